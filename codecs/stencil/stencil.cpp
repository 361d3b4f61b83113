// The codec's face to the pipeline: settings, plan, params, checks on what callers hand in.
#include "codecs/stencil/stencil.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <new>
#include <optional>

#include <quern/codec_features.h>
#include <quern/models.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/device/state.h"
#include "codecs/stencil/levels/chunk.h"
#include "codecs/stencil/levels/coarse_chunk.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/networks/model_use.h"
#include "codecs/stencil/parts/parted_decoder.h"
#include "codecs/stencil/parts/parted_encoder.h"
#include "codecs/stencil/parts/partition.h"
#include "codecs/stencil/plan/array_levels.h"
#include "codecs/stencil/plan/choose_parts.h"
#include "codecs/stencil/plan/edges.h"
#include "codecs/stencil/plan/plan.h"
#include "codecs/stencil/reference_chunk.h"
#include "codecs/stencil/rules.h"
#include "libcompress/format/frame/header_frame.h"

namespace quern::codec::stencil {
namespace {

constexpr CodecInfo kInfo{
    kCodecId,         kCodecVersion,
    "stencil",        "ratio: fitted stencils in fixed point, contexts from neighbouring residuals, rANS",
    CodecTier::ratio, true};

/// Whether groups that are not linear may be had.
enum class Edges : std::uint8_t {
  off,
  measured,  ///< where they pay
  on,        ///< wherever chunks are in levels
};

struct ParsedSettings : models::ModelSettings {
  LayoutChoice layout;
  std::optional<Comparison> comparison;
  std::uint8_t tightening = kTightenings;  ///< kTightenings: the codec chooses
  FittedParts fits;
  Edges edges = Edges::measured;
  bool may_cut = true;           ///< into parts, where they are smaller
  Vector<std::uint64_t> slices;  ///< of parts that were asked for
  kernels::IsaLevel isa = kernels::best_isa();

  std::uint8_t tightening_or(std::uint8_t chosen) const { return tightening == kTightenings ? chosen : tightening; }
};

/// Reads "1d", "2d:K" or "3d:J,K".
std::optional<Layout> parse_layout(std::string_view text, const Shape& shape) {
  Layout layout;
  if (text == "1d") return layout;
  const bool two = text.starts_with("2d:");
  if (!two && !text.starts_with("3d:")) return std::nullopt;
  const char* at = text.data() + 3;
  const char* const end = text.data() + text.size();
  for (std::uint8_t* const split : {&layout.first, &layout.second}) {
    if (two && split == &layout.first) continue;
    if (split == &layout.second && !two && (at == end || *at++ != ',')) return std::nullopt;
    const auto [next, error] = std::from_chars(at, end, *split);
    if (error != std::errc()) return std::nullopt;
    at = next;
  }
  if (at != end || layout.first > layout.second || layout.second > shape.rank()) return std::nullopt;
  return layout;
}

/// Reads what `layout` may be: an order of walking, how axes are merged, or both with a colon between.
std::optional<LayoutChoice> parse_choice(std::string_view text, const Shape& shape) {
  LayoutChoice choice;
  if (text == "auto") return choice;
  for (const std::string_view order : {"raster", "levels", "planes", "wavelet"}) {
    if (!text.starts_with(order)) continue;
    choice.raster = order == "raster";
    choice.levels = order == "levels";
    choice.planes = order == "planes";
    choice.wavelet = order == "wavelet";
    text.remove_prefix(order.size());
    if (text.empty()) return choice;
    if (text[0] != ':') return std::nullopt;
    text.remove_prefix(1);
    break;
  }
  choice.axes = parse_layout(text, shape);
  if (!choice.axes) return std::nullopt;
  return choice;
}

std::optional<Comparison> parse_comparison(std::string_view text) {
  if (text == "boxes") return Comparison::boxes;
  if (text == "blocks") return Comparison::blocks;
  if (text == "whole") return Comparison::whole;
  return std::nullopt;
}

/// Reads "off", or slices of parts along the leading axis that add up to it, as in 1,1,3. False for anything else.
bool parse_parts(std::string_view text, const Shape& shape, ParsedSettings& parsed) {
  // What comes later holds.
  parsed.slices.clear();
  parsed.may_cut = text == "auto";
  if (text == "auto" || text == "off") return true;
  std::uint64_t left = shape.rank() < 2 ? 0 : shape[0];
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (at != end) {
    std::uint64_t slices = 0;
    const auto [next, error] = std::from_chars(at, end, slices);
    if (error != std::errc() || slices == 0 || slices > left || parsed.slices.size() == kMostParts) return false;
    parsed.slices.push_back(slices);
    left -= slices;
    at = next;
    if (at != end && (*at++ != ',' || at == end)) return false;
  }
  return left == 0 && !parsed.slices.empty();
}

std::optional<kernels::IsaLevel> parse_isa(std::string_view text) {
  for (std::size_t i = 0; i < kernels::kIsaLevels; ++i) {
    const auto level = static_cast<kernels::IsaLevel>(i);
    if (text == kernels::isa_name(level)) return level;
  }
  return std::nullopt;
}

Result<ParsedSettings> parse_settings(const Settings& settings, const Shape& shape) {
  ParsedSettings parsed;
  for (const auto& [key, value] : settings) {
    QUERN_ASSIGN_OR_RETURN(const bool taken, models::take_model_setting(key, value, parsed));
    if (taken) continue;
    if (key == "layout") {
      const auto choice = parse_choice(value, shape);
      if (!choice)
        return Status(
            StatusCode::invalid_argument,
            "stencil: layout must be auto, raster, levels, planes or wavelet, or 1d, 2d:K or 3d:J,K that fit the "
            "shape's axes, or one of each as in levels:3d:1,2");
      parsed.layout = *choice;
    } else if (key == "choice") {
      if (value == "auto") continue;
      const auto comparison = parse_comparison(value);
      if (!comparison)
        return Status(StatusCode::invalid_argument, "stencil: choice must be auto, boxes, blocks or whole");
      parsed.comparison = comparison;
    } else if (key == "parts") {
      if (!parse_parts(value, shape, parsed))
        return Status(StatusCode::invalid_argument,
                      "stencil: parts must be auto or off, or numbers of slices that add up to the leading axis of an "
                      "array of two axes or more, as in parts=1,1,3");
    } else if (key == "tightening") {
      if (value == "auto") continue;
      if (value.size() != 1 || value[0] < '0' || value[0] >= '0' + static_cast<char>(kTightenings))
        return Status(StatusCode::invalid_argument, "stencil: tightening must be auto or 0 to 3");
      parsed.tightening = static_cast<std::uint8_t>(value[0] - '0');
    } else if (key == "edges") {
      if (value != "auto" && value != "off" && value != "on")
        return Status(StatusCode::invalid_argument, "stencil: edges must be auto, off or on");
      parsed.edges = value == "on" ? Edges::on : value == "off" ? Edges::off : Edges::measured;
    } else if (key == "fit" || key == "contexts") {
      if (value != "auto" && value != "off")
        return Status(StatusCode::invalid_argument, "stencil: fit and contexts must be auto or off");
      (key == "fit" ? parsed.fits.weights : parsed.fits.contexts) = value == "auto";
    } else if (key == "isa") {
      if (value == "auto") continue;
      const auto isa = parse_isa(value);
      if (!isa) return Status(StatusCode::invalid_argument, "stencil: isa must be auto, baseline, avx2 or avx512");
      if (!kernels::isa_available(*isa))
        return Status(StatusCode::unsupported, "stencil: this processor cannot run the instruction set asked for");
      parsed.isa = *isa;
    } else {
      return Status(StatusCode::unknown_setting,
                    "stencil: unknown setting; it has layout, choice, parts, tightening, edges, fit, contexts, model, "
                    "embed and isa");
    }
  }
  return parsed;
}

/// True when a box of these extents is a non-empty part of a chunk.
bool fits(const std::array<std::uint64_t, 3>& extents, const ChunkGrid& grid) {
  for (std::size_t a = 0; a < 3; ++a) {
    if (extents[a] == 0 || extents[a] > grid.chunk[a]) return false;
  }
  return true;
}

/// The coarse levels of one array.
struct Levels {
  Levels(const Shape& array, const Layout& how, const ChunkGrid& grid, const LevelsForm& form)
      : shape(array), layout(how), count(count_levels(array, how, grid, form)) {}
  Shape shape;
  Layout layout;
  unsigned count;
};

/// What headers tell of chunks.
std::uint64_t features_of(const LevelsForm& form) { return form.edges ? kEdges : 0; }

class Encoder : public ChunkEncoder, public CodecFeatures {
 public:
  Encoder(CodecPlan plan, const EncodeSpec& spec, const Levels& levels, std::unique_ptr<EncodedChunks> encoded)
      : plan_(std::move(plan)),
        spec_(spec),
        levels_(levels),
        scratch_bytes_(encode_scratch_bytes(spec)),
        encoded_(std::move(encoded)) {}

  const CodecPlan& plan() const override { return plan_; }
  std::size_t max_chunk_bytes() const override { return stencil::max_chunk_bytes(spec_); }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out,
                             std::span<std::uint8_t> scratch) const override {
    QUERN_RETURN_IF_ERROR(check_call(in, out, scratch));
    if (encoded_) {
      const std::span<const std::uint8_t> made = encoded_->find(in);
      std::copy(made.begin(), made.end(), out.begin());
      if (!made.empty()) return made.size();
    }
    try {
      return encode_chunk(spec_, in, out, scratch);
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "stencil: out of memory while encoding");
    }
  }
  std::span<const std::uint8_t> device_state() const override {
    if (spec_.prequantized || spec_.form.edges) return {};
    return encoder_state(spec_);
  }
  std::uint64_t features() const override { return features_of(spec_.form); }
  unsigned levels() const override { return spec_.form.levels ? levels_.count : 0; }
  Result<Vector<std::uint64_t>> level_cuts(std::span<const std::uint8_t> chunk,
                                           const std::array<std::uint64_t, 3>& extents) const override {
    if (levels() == 0) return Vector<std::uint64_t>();
    try {
      return stencil::level_cuts(spec_, chunk, extents,
                                 array_level(levels_.shape, levels_.layout, plan_.grid, spec_.form, 1));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "stencil: out of memory while encoding");
    }
  }

 protected:
  Status check_call(const ConstBox3& in, std::span<const std::uint8_t> out,
                    std::span<const std::uint8_t> scratch) const {
    if (!fits(in.extents, plan_.grid)) return Status(StatusCode::invalid_argument, "box is no chunk of the plan");
    if (out.size() < max_chunk_bytes()) return Status(StatusCode::destination_too_small, "chunk buffer is too small");
    if (scratch.size() < scratch_bytes()) return Status(StatusCode::invalid_argument, "scratch is too small");
    return {};
  }

  CodecPlan plan_;
  EncodeSpec spec_;

 private:
  Levels levels_;
  std::size_t scratch_bytes_;
  std::unique_ptr<EncodedChunks> encoded_;  ///< null: the choice of the layout made none
};

/// The same with networks in chunks, which devices do not know.
class NetworkEncoder final : public Encoder {
 public:
  NetworkEncoder(CodecPlan plan, const EncodeSpec& spec, const Levels& levels,
                 std::unique_ptr<const ArrayNetworks> networks)
      : Encoder(std::move(plan), spec, levels, nullptr), networks_(std::move(networks)) {}

  std::uint64_t features() const override { return Encoder::features() | kNetworks; }
  std::span<const std::uint8_t> device_state() const override { return {}; }

 private:
  std::unique_ptr<const ArrayNetworks> networks_;  ///< that the spec has
};

/// The same beside a reference. Chunks of it have no beginnings that hold coarse levels, and devices do not know them.
class BesideEncoder final : public Encoder, public ReferenceChunkEncoder {
 public:
  BesideEncoder(CodecPlan plan, const EncodeSpec& spec, const Levels& levels)
      : Encoder(std::move(plan), spec, levels, nullptr), scratch_bytes_(encode_beside_scratch_bytes(spec)) {}

  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::span<const std::uint8_t> device_state() const override { return {}; }
  unsigned levels() const override { return 0; }
  Result<std::size_t> encode_beside(const ConstBox3& in, const ConstBox3& reference, std::span<std::uint8_t> out,
                                    std::span<std::uint8_t> scratch) const override {
    QUERN_RETURN_IF_ERROR(check_call(in, out, scratch));
    try {
      return encode_chunk_beside(spec_, in, reference, out, scratch);
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "stencil: out of memory while encoding");
    }
  }

 private:
  std::size_t scratch_bytes_;
};

class Decoder : public ChunkDecoder, public CodecFeatures {
 public:
  Decoder(const ChunkGrid& grid, const ChunkSpec& spec, const Levels& levels)
      : grid_(grid), spec_(spec), levels_(levels), scratch_bytes_(decode_scratch_bytes(spec)), device_state_(spec) {}

  const ChunkGrid& grid() const override { return grid_; }
  std::span<const std::uint8_t> device_state() const override { return device_state_.bytes(); }
  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out,
                std::span<std::uint8_t> scratch) const override {
    if (!fits(out.extents, grid_)) return Status(StatusCode::invalid_argument, "box is no chunk of the grid");
    if (scratch.size() < scratch_bytes_) return Status(StatusCode::invalid_argument, "scratch is too small");
    return decode_chunk(spec_, in, out, scratch);
  }
  std::uint64_t features() const override { return features_of(spec_.form); }
  unsigned levels() const override { return levels_.count; }
  bool levels_are_means() const override { return spec_.form.wavelet; }
  std::size_t level_scratch_bytes() const override { return coarse_scratch_bytes(spec_); }
  LevelForm level_form(unsigned level) const override {
    return array_level(levels_.shape, levels_.layout, grid_, spec_.form, level);
  }
  Status decode_level(std::span<const std::uint8_t> in, const MutableBox3& chunk, unsigned level,
                      const MutableBox3& out, std::span<std::uint8_t> scratch) const override {
    if (level == 0 || level > levels_.count) return Status(StatusCode::unsupported, "stencil: there is no such level");
    if (!fits(chunk.extents, grid_)) return Status(StatusCode::invalid_argument, "box is no chunk of the grid");
    if (scratch.size() < level_scratch_bytes()) return Status(StatusCode::invalid_argument, "scratch is too small");
    return decode_coarse(spec_, in, chunk, level_form(level), level, out, scratch);
  }

 protected:
  ChunkGrid grid_;
  ChunkSpec spec_;

 private:
  Levels levels_;
  std::size_t scratch_bytes_;
  DeviceState device_state_;
};

class NetworkDecoder final : public Decoder {
 public:
  NetworkDecoder(const ChunkGrid& grid, const ChunkSpec& spec, const Levels& levels,
                 std::unique_ptr<const ArrayNetworks> networks)
      : Decoder(grid, spec, levels), networks_(std::move(networks)) {}

  std::uint64_t features() const override { return Decoder::features() | kNetworks; }
  std::span<const std::uint8_t> device_state() const override { return {}; }

 private:
  std::unique_ptr<const ArrayNetworks> networks_;  ///< that the spec has
};

class BesideDecoder final : public Decoder, public ReferenceChunkDecoder {
 public:
  BesideDecoder(const ChunkGrid& grid, const ChunkSpec& spec, const Levels& levels, const ReferenceId& reference)
      : Decoder(grid, spec, levels), reference_(reference), scratch_bytes_(decode_beside_scratch_bytes(spec)) {}

  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::span<const std::uint8_t> device_state() const override { return {}; }
  unsigned levels() const override { return 0; }
  const ReferenceId& reference() const override { return reference_; }
  /// A chunk whose reference nobody has.
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out,
                std::span<std::uint8_t> scratch) const override {
    if (!in.empty() && needs_reference(in[0])) return missing_reference(reference_);
    return Decoder::decode(in, out, scratch);
  }
  Status decode_beside(std::span<const std::uint8_t> in, const ConstBox3& reference, const MutableBox3& out,
                       std::span<std::uint8_t> scratch) const override {
    if (!fits(out.extents, grid_)) return Status(StatusCode::invalid_argument, "box is no chunk of the grid");
    if (scratch.size() < scratch_bytes_) return Status(StatusCode::invalid_argument, "scratch is too small");
    const Status status = decode_chunk_beside(spec_, in, reference, out, scratch);
    return status.code() == StatusCode::reference_missing ? missing_reference(reference_) : status;
  }

 private:
  ReferenceId reference_;
  std::size_t scratch_bytes_;
};

class Codec final : public ArrayCodec, public ReferenceCodec {
 public:
  explicit Codec(const ModelSource* models) : models_(models) {}

  const CodecInfo& info() const override { return kInfo; }

  bool supports(DType dtype, BoundKind kind) const override { return stencil::supports(dtype, kind); }

  Vector<Settings> alternatives(const Settings& settings, const Shape& shape) const override {
    Vector<Settings> list;
    for (const auto& setting : settings)
      if (setting.first == "layout") return list;
    for (const char* layout : {"levels", "wavelet", "raster", "planes"})
      if (shape.rank() > 1 || layout[0] != 'p') list.push_back({{"layout", layout}});
    return list;
  }

  Result<std::unique_ptr<ChunkEncoder>> plan(const PlanRequest& request) const override {
    if (!supports(request.dtype, request.bound.kind) || !(request.bound.value > 0))
      return Status(StatusCode::unsupported, "stencil takes absolute bounds above 0, and no 64-bit integers");
    if (request.shape.elems() == 0 || request.sample->elems() == 0)
      return Status(StatusCode::invalid_shape, "stencil needs at least one element");
    QUERN_ASSIGN_OR_RETURN(const ParsedSettings parsed, parse_settings(request.settings, request.shape));
    const kernels::StencilKernels& kernels = kernels::stencil_kernels(parsed.isa);
    try {
      LayoutChoice choice = parsed.layout;
      choice.parts = parsed.fits;
      choice.comparison = parsed.comparison;
      if (!parsed.slices.empty()) {
        if (parsed.has_model)
          return Status(StatusCode::invalid_argument,
                        "stencil: arrays in parts have no model; give parts=off or model=off");
        QUERN_ASSIGN_OR_RETURN(ChosenParts parts, take_parts(request, choice, kernels, parsed.slices));
        return parted(request, parsed, std::move(parts));
      }
      QUERN_ASSIGN_OR_RETURN(ChosenLayout chosen, choose_layout(request, choice, kernels));
      if (parsed.edges == Edges::on) {
        chosen.way.layout.edges = chosen.way.layout.levels;
        if (chosen.way.layout.edges) chosen.encoded.reset();
      } else if (parsed.edges == Edges::measured) {
        QUERN_RETURN_IF_ERROR(try_edges(request, parsed.fits, kernels, chosen));
      }
      // Neither groups that are not linear nor networks are for parts.
      if (parsed.may_cut && parsed.edges != Edges::on && !parsed.has_model) {
        QUERN_ASSIGN_OR_RETURN(std::optional<ChosenParts> parts, choose_parts(request, choice, kernels, chosen));
        if (parts) return parted(request, parsed, std::move(*parts));
      }
      CodecPlan plan;
      const Layout& layout = chosen.way.layout;
      plan.grid = make_grid(request.shape, layout);
      plan.params = write_params(layout);
      if (parsed.tightening_or(chosen.way.tightening) != chosen.way.tightening) {
        chosen.way.tightening = parsed.tightening;
        chosen.encoded.reset();
      }
      EncodeSpec spec = encode_spec(request, chosen.way, parsed.fits, kernels);
      const Levels levels(request.shape, layout, plan.grid, spec.form);
      if (parsed.has_model) {
        QUERN_ASSIGN_OR_RETURN(ChosenNetworks with,
                               choose_networks(request, parsed, models_, parsed.isa, plan.grid, spec));
        if (with.networks) {
          plan.params = write_params(layout, with.reference);
          spec.networks = &with.networks->of_chunks;
          return std::unique_ptr<ChunkEncoder>(
              std::make_unique<NetworkEncoder>(std::move(plan), spec, levels, std::move(with.networks)));
        }
      }
      return std::unique_ptr<ChunkEncoder>(
          std::make_unique<Encoder>(std::move(plan), spec, levels, std::move(chosen.encoded)));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "stencil: out of memory while planning");
    }
  }

  Result<std::unique_ptr<ChunkEncoder>> plan_beside(const PlanRequest& request, std::span<const std::uint8_t> params,
                                                    const ReferenceId& reference) const override {
    if (!supports(request.dtype, request.bound.kind) || !(request.bound.value > 0) || request.prequantized)
      return Status(StatusCode::unsupported, "stencil takes references under absolute bounds above 0");
    if (request.shape.elems() == 0) return Status(StatusCode::invalid_shape, "stencil needs at least one element");
    QUERN_ASSIGN_OR_RETURN(const ParsedSettings parsed, parse_settings(request.settings, request.shape));
    try {
      if (names_parts(params)) return parted_beside(request, parsed, params, reference);
      Way way;
      QUERN_ASSIGN_OR_RETURN(const StoredParams stored, read_params(params, request.shape));
      way.layout = stored.layout;
      way.layout.reference = reference;
      way.layout.edges = false;
      way.tightening = parsed.tightening_or(0);
      CodecPlan plan;
      plan.grid = make_grid(request.shape, way.layout);
      plan.params = write_params(way.layout);
      const EncodeSpec spec = encode_spec(request, way, parsed.fits, kernels::stencil_kernels(parsed.isa));
      const Levels levels(request.shape, way.layout, plan.grid, spec.form);
      return std::unique_ptr<ChunkEncoder>(std::make_unique<BesideEncoder>(std::move(plan), spec, levels));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "stencil: out of memory while planning");
    }
  }

  Result<std::unique_ptr<ChunkDecoder>> open(const OpenRequest& request) const override {
    if (request.version != kCodecVersion)
      return Status(StatusCode::unsupported_version, "stencil: version {0} is not known here; a newer quern reads it",
                    request.version);
    if (!supports(request.dtype, BoundKind::abs))
      return Status(StatusCode::corrupt, "stencil: elements of this type have no coded form");
    try {
      if (names_parts(request.params)) {
        QUERN_ASSIGN_OR_RETURN(const Partition partition, read_partition(request.params, request.shape));
        return make_parted_decoder(request.dtype, request.shape, partition,
                                   kernels::stencil_kernels(kernels::best_isa()));
      }
      QUERN_ASSIGN_OR_RETURN(const StoredParams stored, read_params(request.params, request.shape));
      const Layout& layout = stored.layout;
      const ChunkGrid grid = make_grid(request.shape, layout);
      const LevelsForm form = levels_form(request.shape, layout, grid);
      ChunkSpec spec{request.dtype, grid.chunk, &kernels::stencil_kernels(kernels::best_isa()), form};
      const Levels levels(request.shape, layout, grid, form);
      if (layout.reference)
        return std::unique_ptr<ChunkDecoder>(std::make_unique<BesideDecoder>(grid, spec, levels, *layout.reference));
      if (stored.model) {
        QUERN_ASSIGN_OR_RETURN(auto networks, open_networks(*stored.model, models_, kernels::best_isa()));
        spec.networks = &networks->of_chunks;
        return std::unique_ptr<ChunkDecoder>(std::make_unique<NetworkDecoder>(grid, spec, levels, std::move(networks)));
      }
      return std::unique_ptr<ChunkDecoder>(std::make_unique<Decoder>(grid, spec, levels));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "stencil: out of memory while opening");
    }
  }

 private:
  static Result<std::unique_ptr<ChunkEncoder>> parted(const PlanRequest& request, const ParsedSettings& parsed,
                                                      ChosenParts chosen) {
    for (PartEncoding& part : chosen.parts) {
      if (part.spec.prequantized || parsed.tightening_or(part.spec.tightening) == part.spec.tightening) continue;
      part.spec.tightening = parsed.tightening;
      part.encoded.reset();
    }
    return make_parted_encoder(request.shape, chosen.chunk_slices, std::move(chosen.parts), std::nullopt);
  }

  static Result<std::unique_ptr<ChunkEncoder>> parted_beside(const PlanRequest& request, const ParsedSettings& parsed,
                                                             std::span<const std::uint8_t> params,
                                                             const ReferenceId& reference) {
    QUERN_ASSIGN_OR_RETURN(const Partition partition, read_partition(params, request.shape));
    Vector<PartEncoding> parts;
    for (const Part& part : partition.parts) {
      PlanRequest alone = request;
      alone.shape = part_shape(request.shape, part.slices);
      const Way way{part.layout, parsed.tightening_or(0)};
      parts.push_back({part, encode_spec(alone, way, parsed.fits, kernels::stencil_kernels(parsed.isa))});
    }
    return make_parted_encoder(request.shape, partition.chunk_slices, std::move(parts), reference);
  }

  const ModelSource* models_;  ///< null: there are none
};

}  // namespace

const ArrayCodec& stencil_codec() {
  static const Codec codec(nullptr);
  return codec;
}

std::unique_ptr<ArrayCodec> stencil_codec_with(const ModelSource& models) { return std::make_unique<Codec>(&models); }

}  // namespace quern::codec::stencil
