// The lorenzo codec object: settings, plans, and the bridge from the pipeline's boxes to the kernels.
#include "codecs/lorenzo/lorenzo.h"

#include <charconv>
#include <new>
#include <optional>
#include <type_traits>

#include "codecs/lorenzo/plan.h"
#include "codecs/lorenzo/rules.h"
#include "kernels/cpu/lorenzo.h"

namespace quern::codec::lorenzo {
namespace {

using kernels::ChunkBox;
using kernels::ChunkRules;
using kernels::LorenzoKernels;

constexpr CodecInfo kInfo{kCodecId, kCodecVersion, "lorenzo",
                          "throughput: verified quantization, Lorenzo prediction, bit planes without zero bytes"};

struct ParsedSettings {
  std::optional<Layout> layout;
  kernels::IsaLevel isa = kernels::best_isa();
};

/// Reads "K" or "J,K" behind "2d:" or "3d:".
bool parse_splits(std::string_view text, std::size_t count, std::uint8_t (&out)[2]) {
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < count; ++i) {
    const auto [next, error] = std::from_chars(at, end, out[i]);
    if (error != std::errc()) return false;
    at = next;
    if (i + 1 < count && (at == end || *at++ != ',')) return false;
  }
  return at == end;
}

Result<Layout> parse_layout(std::string_view text, const Shape& shape) {
  std::uint8_t splits[2] = {0, 0};
  Layout layout;
  if (text == "1d") return layout;
  if (text.starts_with("2d:") && parse_splits(text.substr(3), 1, splits)) {
    layout = {kernels::TileShape::plane, 0, splits[0]};
  } else if (text.starts_with("3d:") && parse_splits(text.substr(3), 2, splits)) {
    layout = {kernels::TileShape::block, splits[0], splits[1]};
  } else {
    return Status(StatusCode::invalid_argument, "lorenzo: layout must be auto, 1d, 2d:K or 3d:J,K");
  }
  if (layout.first > layout.second || layout.second > shape.rank())
    return Status(StatusCode::invalid_argument, "lorenzo: layout splits {0},{1} do not fit the shape's axes",
                  layout.first, layout.second);
  return layout;
}

Result<ParsedSettings> parse_settings(const Settings& settings, const Shape& shape) {
  ParsedSettings parsed;
  for (const auto& [key, value] : settings) {
    if (key == "layout") {
      if (value == "auto") continue;
      QUERN_ASSIGN_OR_RETURN(const Layout layout, parse_layout(value, shape));
      parsed.layout.emplace(layout);
    } else if (key == "isa") {
      if (value == "auto") continue;
      bool known = false;
      for (std::size_t i = 0; i < kernels::kIsaLevels; ++i) {
        const auto level = static_cast<kernels::IsaLevel>(i);
        if (value != kernels::isa_name(level)) continue;
        if (!kernels::isa_available(level))
          return Status(StatusCode::unsupported, "lorenzo: this processor cannot run the instruction set asked for");
        parsed.isa = level;
        known = true;
      }
      if (!known) return Status(StatusCode::invalid_argument, "lorenzo: isa must be auto, baseline, avx2 or avx512");
    } else {
      return Status(StatusCode::unknown_setting, "lorenzo: unknown setting; it has layout and isa");
    }
  }
  return parsed;
}

std::size_t tiles_in(const ChunkGrid& grid, kernels::TileShape tile) {
  const auto counts = kernels::tile_counts(ChunkBox{grid.chunk, {}}, tile);
  return counts[0] * counts[1] * counts[2];
}

/// The rules are all that kernels are told.
std::span<const std::uint8_t> bytes_of(const ChunkRules& rules) {
  static_assert(std::is_trivially_copyable_v<ChunkRules>);
  return {reinterpret_cast<const std::uint8_t*>(&rules), sizeof rules};
}

class LorenzoEncoder final : public ChunkEncoder {
 public:
  LorenzoEncoder(CodecPlan plan, const ChunkRules& rules, const LorenzoKernels& kernels)
      : plan_(std::move(plan)), rules_(rules), kernels_(kernels) {}

  const CodecPlan& plan() const override { return plan_; }
  std::size_t max_chunk_bytes() const override {
    return kernels::max_lorenzo_chunk_bytes(rules_.element, tiles_in(plan_.grid, rules_.tile));
  }
  std::size_t scratch_bytes() const override { return kernels_.encode_scratch_bytes; }
  Result<std::size_t> encode(const ConstBox3& in, std::span<std::uint8_t> out,
                             std::span<std::uint8_t> scratch) const override {
    if (out.size() < max_chunk_bytes() || scratch.size() < scratch_bytes())
      return Status(StatusCode::destination_too_small, "lorenzo: {0} bytes are needed for a chunk",
                    static_cast<std::int64_t>(max_chunk_bytes()));
    return kernels_.encode(rules_, in.data, ChunkBox{in.extents, in.strides}, out.data(), scratch.data());
  }
  std::span<const std::uint8_t> device_state() const override { return bytes_of(rules_); }

 private:
  CodecPlan plan_;
  ChunkRules rules_;
  const LorenzoKernels& kernels_;
};

class LorenzoDecoder final : public ChunkDecoder {
 public:
  LorenzoDecoder(const ChunkGrid& grid, const ChunkRules& rules, const LorenzoKernels& kernels)
      : grid_(grid), rules_(rules), kernels_(kernels) {}

  const ChunkGrid& grid() const override { return grid_; }
  std::size_t scratch_bytes() const override { return kernels_.decode_scratch_bytes; }
  Status decode(std::span<const std::uint8_t> in, const MutableBox3& out,
                std::span<std::uint8_t> scratch) const override {
    if (scratch.size() < scratch_bytes())
      return Status(StatusCode::destination_too_small, "lorenzo: {0} bytes of scratch are needed",
                    static_cast<std::int64_t>(scratch_bytes()));
    if (!kernels_.decode(rules_, in.data(), in.size(), out.data, ChunkBox{out.extents, out.strides}, scratch.data()))
      return Status(StatusCode::corrupt, "lorenzo: the chunk's bytes do not make sense");
    return {};
  }
  std::span<const std::uint8_t> device_state() const override { return bytes_of(rules_); }

 private:
  ChunkGrid grid_;
  ChunkRules rules_;
  const LorenzoKernels& kernels_;
};

class LorenzoCodec final : public ArrayCodec {
 public:
  const CodecInfo& info() const override { return kInfo; }

  bool supports(DType dtype, BoundKind kind) const override {
    if (kind == BoundKind::pwrel) return is_float(dtype);
    return kind == BoundKind::abs || kind == BoundKind::lossless;
  }

  Result<std::unique_ptr<ChunkEncoder>> plan(const PlanRequest& request) const override {
    if (!supports(request.dtype, request.bound.kind))
      return Status(StatusCode::unsupported, "lorenzo: this kind of bound does not fit the element type");
    QUERN_ASSIGN_OR_RETURN(const ParsedSettings parsed, parse_settings(request.settings, request.shape));
    const LorenzoKernels& kernels = kernels::lorenzo_kernels(parsed.isa);
    try {
      QUERN_ASSIGN_OR_RETURN(const Choice choice, choose(request, parsed.layout ? &*parsed.layout : nullptr, kernels));
      CodecPlan plan;
      plan.grid = make_grid(request.shape, choice.layout, request.dtype);
      plan.params = write_params(choice.rules, choice.layout);
      return std::unique_ptr<ChunkEncoder>(new LorenzoEncoder(std::move(plan), choice.rules, kernels));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "lorenzo: out of memory while planning");
    }
  }

  Result<std::unique_ptr<ChunkDecoder>> open(const OpenRequest& request) const override {
    if (request.version != kCodecVersion)
      return Status(StatusCode::unsupported_version, "lorenzo: version {0} is not known here; a newer quern reads it",
                    request.version);
    ChunkRules rules;
    Layout layout;
    QUERN_RETURN_IF_ERROR(read_params(request.params, request.dtype, request.shape, rules, layout));
    try {
      return std::unique_ptr<ChunkDecoder>(new LorenzoDecoder(make_grid(request.shape, layout, request.dtype), rules,
                                                              kernels::lorenzo_kernels(kernels::best_isa())));
    } catch (const std::bad_alloc&) {
      return Status(StatusCode::out_of_memory, "lorenzo: out of memory while opening");
    }
  }
};

}  // namespace

const ArrayCodec& lorenzo_codec() {
  static const LorenzoCodec codec;
  return codec;
}

}  // namespace quern::codec::lorenzo
