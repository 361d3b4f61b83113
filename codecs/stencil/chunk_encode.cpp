// A chunk to bytes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/device/levels_coarser.h"
#include "codecs/stencil/device/wavelet_encode_steps.h"
#include "codecs/stencil/elements.h"
#include "codecs/stencil/lattice/chunk.h"
#include "codecs/stencil/levels/chunk.h"
#include "codecs/stencil/prequantized_chunk.h"
#include "codecs/stencil/range.h"
#include "codecs/stencil/raster/fit.h"
#include "codecs/stencil/raster/loop.h"
#include "codecs/stencil/raster/model.h"
#include "codecs/stencil/raster/planes.h"
#include "codecs/stencil/raster/stages.h"
#include "codecs/stencil/wavelet/chunk.h"
#include "coding/distribution_fit.h"
#include "coding/stream_writer.h"
#include "coding/symbol_counts.h"
#include "coding/token_tables.h"
#include "kernels/stencil/rules.h"
#include "libcompress/format/writer.h"

namespace quern::codec::stencil {
namespace {

using kernels::StencilExtents;

struct EncodeMemory {
  EncodeMemory(Arena& arena, const std::array<std::uint64_t, 3>& extents, std::size_t raw_bytes)
      : elems(static_cast<std::size_t>(extents[0] * extents[1] * extents[2])),
        trial_extents(kernels::stencil_extents(TrialSize(extents).extents)),
        codes(arena.take<std::int32_t>(elems)),
        symbols(arena.take<std::uint16_t>(elems)),
        entries(coding::take_entries(arena)),
        row_targets(arena.take<std::int64_t>(row_room(static_cast<std::size_t>(extents[2])))),
        originals(arena.take<double>(row_room(static_cast<std::size_t>(extents[2])))),
        counts(arena),
        planes(arena, kernels::stencil_extents(extents), false),
        trial_targets(arena.take<std::int64_t>(trial_extents.elems() + kernels::kStencilBlock)),
        trial_special(arena.take<std::uint8_t>(trial_extents.elems())),
        fit(arena, trial_extents),
        words_count(raw_bytes / 2 + coding::kSpareWords),
        words(arena.take<std::uint16_t>(words_count)) {}

  std::size_t elems;
  StencilExtents trial_extents;
  std::int32_t* codes;
  std::uint16_t* symbols;
  kernels::ResidualEntries entries;
  std::int64_t* row_targets;
  double* originals;
  coding::SymbolCounts counts;
  WorkPlanes planes;
  std::int64_t* trial_targets;
  std::uint8_t* trial_special;
  FitMemory fit;
  std::size_t words_count;
  std::uint16_t* words;
};

/// Values of a row in units.
template <class Element>
void row_targets(const typename Element::Bits* row, std::size_t columns, const PredictionFormat& format,
                 std::int64_t* out) {
  const double inverse = 1 / format.unit();
  for (std::size_t x = 0; x < columns; ++x)
    out[x] = nearest_integer(kernels::in_units(Element::value(row[x]), format.base, inverse));
}

/// Special elements take the ordinary one before them (at the start of a row: after them, or 0).
void fill_special(std::int64_t* targets, const std::uint8_t* special, std::size_t columns) {
  std::size_t x = 0;
  while (x < columns && special[x] != 0) ++x;
  std::int64_t last = x < columns ? targets[x] : 0;
  for (x = 0; x < columns; ++x) {
    if (special[x] != 0) targets[x] = last;
    last = targets[x];
  }
}

/// Where in a chunk the trial box lies: of three places along each axis, where neighbours in a row differ most in bits.
template <class Element>
std::array<std::uint64_t, 3> trial_place(const ConstBox3& in, const std::array<std::uint64_t, 3>& extents,
                                         const PredictionFormat& format, std::int64_t* row_room) {
  constexpr std::uint64_t kPlaces = 3;
  constexpr std::uint64_t kRows = 24;
  std::array<std::uint64_t, 3> best{};
  std::uint64_t most = 0;
  if (extents == in.extents) return best;
  const auto columns = static_cast<std::size_t>(extents[2]);
  const std::uint64_t rows = extents[0] * extents[1];
  for (std::uint64_t i = 0; i < kPlaces * kPlaces * kPlaces; ++i) {
    const std::array<std::uint64_t, 3> at{i / (kPlaces * kPlaces), i / kPlaces % kPlaces, i % kPlaces};
    std::array<std::uint64_t, 3> first{};
    bool repeated = false;
    for (std::size_t a = 0; a < 3; ++a) {
      const std::uint64_t room = in.extents[a] - extents[a];
      first[a] = room * at[a] / (kPlaces - 1);
      repeated = repeated || (room == 0 && at[a] > 0);
    }
    if (repeated) continue;
    std::uint64_t bits = 1;
    for (std::uint64_t n = 0; n < std::min(rows, kRows); ++n) {
      const std::uint64_t r = n * rows / std::min(rows, kRows);
      const auto row =
          static_cast<std::size_t>((first[0] + r / extents[1]) * in.extents[1] + first[1] + r % extents[1]);
      const auto* const data = static_cast<const typename Element::Bits*>(in.data) + row_offset(in, row) + first[2];
      const std::uint8_t* const special = in.special == nullptr ? nullptr : special_row(in, row) + first[2];
      row_targets<Element>(data, columns, format, row_room);
      for (std::size_t x = 1; x < columns; ++x) {
        if (special != nullptr && (special[x] != 0 || special[x - 1] != 0)) continue;
        const std::int64_t d = (row_room[x] - row_room[x - 1]) / (std::int64_t{1} << format.fraction_bits);
        bits += static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(d < 0 ? -d : d)));
      }
    }
    if (bits > most) {
      most = bits;
      best = first;
    }
  }
  return best;
}

template <class Element>
TrialBox load_trial(const ConstBox3& in, const PredictionFormat& format, EncodeMemory& memory) {
  const auto extents = TrialSize(in.extents).extents;
  const auto first = trial_place<Element>(in, extents, format, memory.row_targets);
  const auto columns = static_cast<std::size_t>(extents[2]);
  const auto* const data = static_cast<const typename Element::Bits*>(in.data);
  TrialBox box{memory.trial_extents, memory.trial_targets, in.special != nullptr ? memory.trial_special : nullptr};
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < extents[0]; ++i) {
    for (std::uint64_t j = 0; j < extents[1]; ++j, at += columns) {
      const auto r = static_cast<std::size_t>((first[0] + i) * in.extents[1] + first[1] + j);
      row_targets<Element>(data + row_offset(in, r) + first[2], columns, format, memory.trial_targets + at);
      if (in.special == nullptr) continue;
      std::memcpy(memory.trial_special + at, special_row(in, r) + first[2], columns);
      fill_special(memory.trial_targets + at, memory.trial_special + at, columns);
    }
  }
  std::fill_n(memory.trial_targets + at, kernels::kStencilBlock, 0);
  return box;
}

template <class Element>
class ChunkWriter {
 public:
  using Bits = typename Element::Bits;

  ChunkWriter(const EncodeSpec& spec, const ConstBox3& in, EncodeMemory& memory, std::span<std::uint8_t> scratch)
      : spec_(spec),
        in_(in),
        memory_(memory),
        scratch_(scratch),
        extents_(kernels::stencil_extents(in.extents)),
        data_(static_cast<const Bits*>(in.data)) {}

  Result<std::size_t> run(std::span<std::uint8_t> out) {
    if (spec_.prequantized) return prequantized(out);
    SortedChunk sorted;
    if (spec_.form.levels && !spec_.form.wavelet) sorted = sort_chunk(spec_, in_, scratch_);
    const ChunkRange range =
        sorted.sorted ? chunk_range<Element>(in_, spec_.dtype, spec_.bound, *spec_.kernels, sorted.parts) : box_range();
    if (range.ordinary == 0) return raw(out);
    if (constant(range, out)) return 1 + sizeof(Bits);
    QUERN_ASSIGN_OR_RETURN(const std::size_t on_lattice, lattice(out, sorted.sorted));
    if (on_lattice != 0) return on_lattice;
    if (!choose_format(range, spec_.dtype, spec_.bound, model_.format)) return raw(out);
    if (spec_.form.wavelet) {
      // What does not suit the transform goes on in raster order.
      QUERN_ASSIGN_OR_RETURN(const std::size_t bytes, encode_wavelet(spec_, in_, range, out, scratch_));
      if (bytes != 0) return bytes;
    }
    if (spec_.form.levels) return levels(range, sorted.sorted, out);
    watched_ = codes_may_fall_short(range, model_.format);
    fit();
    encode_rows();
    if (!exact_ || !choose_raster_coding(counts_, exceptions_, rows(), memory_.elems * sizeof(Bits), model_))
      return raw(out);
    return write(out);
  }

  /// See fit_raster_model.
  bool fit_alone(RasterModel& model) {
    if (spec_.form.wavelet || spec_.form.levels) return false;
    const ChunkRange range = box_range();
    if (range.ordinary == 0 || range.high - range.low <= 2 * spec_.bound) return false;
    if (!choose_format(range, spec_.dtype, spec_.bound, model_.format)) return false;
    if (beyond_devices(range, model_.format)) return false;
    fit();
    model = model_;
    return true;
  }

  /// See wavelet_range.
  bool range_for_wavelet(ChunkRange& range) {
    range = box_range();
    if (range.ordinary == 0 || range.high - range.low <= 2 * spec_.bound) return false;
    return choose_format(range, spec_.dtype, spec_.bound, model_.format);
  }

  /// See choose_levels_format.
  bool levels_format(LevelsValueFormat& format, bool& narrow) {
    const ChunkRange range = box_range();
    if (range.ordinary == 0 || range.high - range.low <= 2 * spec_.bound) return false;
    if (!choose_format(range, spec_.dtype, spec_.bound, model_.format)) return false;
    if (beyond_devices(range, model_.format)) return false;
    format = format_for_levels(range);
    narrow = may_be_narrow(range, format);
    return true;
  }

  Result<ChunkCost> estimate() {
    const std::uint64_t as_they_are = std::uint64_t{8 * sizeof(Bits)} * memory_.elems << 12;
    if (spec_.prequantized) {
      const PrequantizedChunk chunk = prequantized_chunk(spec_, in_);
      if (chunk.codes.empty()) return ChunkCost{as_they_are, 0};
      QUERN_ASSIGN_OR_RETURN(ChunkCost cost, estimate_chunk(chunk.spec, chunk.box, scratch_));
      cost.residuals += std::uint64_t{chunk.head.size()} << 15;
      return cost;
    }
    const ChunkRange range = box_range();
    if (range.ordinary == 0 || !choose_format(range, spec_.dtype, spec_.bound, model_.format))
      return ChunkCost{as_they_are, 0};
    if (const LatticePlaces places = lattice_places(spec_, in_); !places.numbers.empty()) {
      QUERN_ASSIGN_OR_RETURN(ChunkCost cost, estimate_chunk(places.spec, places.box, scratch_));
      cost.model += std::uint64_t{8 * kLatticeHead} << 12;
      return cost;
    }
    if (spec_.form.wavelet) {
      QUERN_ASSIGN_OR_RETURN(const ChunkCost cost, estimate_wavelet(spec_, in_, range, scratch_));
      if (cost.residuals != 0) return cost;
    }
    if (spec_.form.levels) {
      const LevelsValueFormat format = format_for_levels(range);
      return estimate_levels(spec_, in_, format, may_be_narrow(range, format), scratch_);
    }
    model_.format.masked = in_.special != nullptr;
    const FitCost fitted = fit_model(load_trial<Element>(in_, model_.format, memory_), *spec_.kernels, memory_.fit,
                                     spec_.quick_estimate ? RasterEffort::quick_estimate : RasterEffort::estimate,
                                     spec_.parts, model_, spec_.most_plain);
    if (fitted.given_up) return ChunkCost{as_they_are, 0, fitted.plain};
    if (spec_.quick_estimate) return ChunkCost{fitted.bits, 0, fitted.plain};
    encode_rows();
    const std::uint64_t bits = coding::estimate_distributions_cost(counts_, model_.distributions) +
                               (std::uint64_t{exceptions_.bytes.size()} << 15);
    Vector<std::uint8_t> head;
    write_raster_model(model_, extents_.shape(), head);
    return ChunkCost{bits, std::uint64_t{head.size()} << 15, fitted.plain};
  }

 private:
  ChunkRange box_range() const {
    return chunk_range<Element>(in_, spec_.dtype, spec_.bound, *spec_.kernels, {&in_, 1});
  }

  void fit() {
    model_.format.masked = in_.special != nullptr;
    fit_model(load_trial<Element>(in_, model_.format, memory_), *spec_.kernels, memory_.fit,
              raster_effort(spec_.effort), spec_.parts, model_);
  }

  /// Codes the codes of prequantized elements.
  Result<std::size_t> prequantized(std::span<std::uint8_t> out) {
    const PrequantizedChunk chunk = prequantized_chunk(spec_, in_);
    if (chunk.codes.empty()) return raw(out);
    const std::size_t head = chunk.head.size();
    QUERN_ASSIGN_OR_RETURN(const std::size_t bytes, encode_chunk(chunk.spec, chunk.box, out.subspan(head), scratch_));
    if (head + bytes > memory_.elems * sizeof(Bits)) return raw(out);
    std::memcpy(out.data(), chunk.head.data(), head);
    return head + bytes;
  }

  /// Codes the places of the elements on their lattice; 0 when they have none that pays. What is sorted is lost then.
  Result<std::size_t> lattice(std::span<std::uint8_t> out, bool& sorted) {
    const LatticePlaces places = lattice_places(spec_, in_);
    if (places.numbers.empty()) return std::size_t{0};
    sorted = false;
    QUERN_ASSIGN_OR_RETURN(const std::size_t bytes,
                           encode_chunk(places.spec, places.box, out.subspan(kLatticeHead), scratch_));
    if (kLatticeHead + bytes > memory_.elems * sizeof(Bits)) return std::size_t{0};
    write_lattice(places.lattice, out);
    return kLatticeHead + bytes;
  }

  Result<std::size_t> levels(const ChunkRange& range, bool sorted, std::span<std::uint8_t> out) {
    const LevelsValueFormat format = format_for_levels(range);
    QUERN_ASSIGN_OR_RETURN(const std::size_t bytes,
                           encode_levels(spec_, in_, format, may_be_narrow(range, format), sorted, out, scratch_));
    if (bytes == 0) return raw(out);
    return bytes;
  }

  bool may_be_narrow(const ChunkRange& range, const LevelsValueFormat& format) const {
    return narrow_values(range, format, spec_.tightening);
  }
  LevelsValueFormat format_for_levels(const ChunkRange& range) const {
    if (in_.special != nullptr) return limited_levels_format(range, model_.format, true);
    LevelsValueFormat format(model_.format);
    leave_room(range, format);
    return format;
  }

  Result<std::size_t> raw(std::span<std::uint8_t> out) const {
    out[0] = static_cast<std::uint8_t>(Mode::raw);
    const std::size_t bytes = extents_.columns * sizeof(Bits);
    for (std::size_t r = 0; r < rows(); ++r) std::memcpy(out.data() + 1 + r * bytes, data_ + row_offset(in_, r), bytes);
    return 1 + rows() * bytes;
  }

  bool constant(const ChunkRange& range, std::span<std::uint8_t> out) const {
    if (!(range.high - range.low <= 2 * spec_.bound)) return false;
    const Bits middle = range.low == range.high ? first_ordinary() : Element::bits(range.low / 2 + range.high / 2);
    for (std::size_t r = 0; r < rows(); ++r) {
      const Bits* const row = data_ + row_offset(in_, r);
      const std::uint8_t* const special = special_row(in_, r);
      for (std::size_t x = 0; x < extents_.columns; ++x)
        if ((special == nullptr || special[x] == 0) && !keeps_bound<Element>(row[x], middle, spec_.bound)) return false;
    }
    out[0] = static_cast<std::uint8_t>(Mode::constant);
    std::memcpy(out.data() + 1, &middle, sizeof(middle));
    return true;
  }

  Bits first_ordinary() const {
    for (std::size_t r = 0; r < rows(); ++r) {
      const std::uint8_t* const special = special_row(in_, r);
      for (std::size_t x = 0; x < extents_.columns; ++x)
        if (special == nullptr || special[x] == 0) return data_[row_offset(in_, r) + x];
    }
    return 0;
  }

  void encode_rows() {
    std::array<SplitWeights, kernels::kRowClasses> split;
    for (std::size_t c = 0; c < split.size(); ++c) split[c] = split_weights(extents_.shape(), c, model_);
    most_exact_ = std::ldexp(1.0, 51 - static_cast<int>(model_.format.weight_bits + kWeightSumBits));
    WorkPlanes& planes = memory_.planes;
    planes.clear();
    memory_.counts.clear();
    for (std::size_t p = 0; p < extents_.planes; ++p) {
      if (model_.mean) planes.update_mean(*spec_.kernels, p);
      for (std::size_t r = 0; r < extents_.rows; ++r) {
        const std::size_t n = p * extents_.rows + r;
        const SplitWeights& weights = split[kernels::row_class(extents_, p, r)];
        const Bits* const row = data_ + row_offset(in_, n);
        const std::uint8_t* const special = special_row(in_, n);
        std::int32_t* const codes = memory_.codes + n * extents_.columns;
        widen_elements<Element>(*spec_.kernels, row, 1, extents_.columns, memory_.originals);
        spec_.kernels->units(memory_.originals, extents_.columns, model_.format.base, 1 / model_.format.unit(),
                             memory_.row_targets);
        planes.start_row(p, r);
        run_row_of(*spec_.kernels,
                   {planes.far_sums(*spec_.kernels, p, r, weights), memory_.row_targets, special, planes.values(p, r),
                    planes.magnitudes(p, r), codes},
                   weights, model_, extents_.columns);
        planes.finish_row(p, r);
        if (watched_) exact_ = exact_ && all_within(planes.values(p, r), extents_.columns, most_exact_);
        note_exceptions(row, special, planes.values(p, r), n * extents_.columns);
        note_symbols(special, planes.all_context_sums(*spec_.kernels, p, r, model_), codes, n * extents_.columns);
      }
    }
    memory_.counts.add_to(counts_);
  }

  void note_exceptions(const Bits* row, const std::uint8_t* special, const double* values, std::size_t first) {
    constexpr std::size_t kBlock = 64;
    for (std::size_t begin = 0; begin < extents_.columns; begin += kBlock) {
      const std::size_t end = std::min(begin + kBlock, extents_.columns);
      if (clearly_kept<Element>(*spec_.kernels, memory_.originals + begin, values + begin, end - begin,
                                model_.format.unit(), model_.format.base, spec_.bound))
        continue;
      for (std::size_t x = begin; x < end; ++x) {
        if (special != nullptr && special[x] != 0) continue;
        const Bits back = Element::bits(values[x] * model_.format.unit() + model_.format.base);
        if (!keeps_bound<Element>(row[x], back, spec_.bound)) note_exception(first + x, row[x]);
      }
    }
  }

  void note_exception(std::size_t index, Bits bits) {
    Writer writer(exceptions_.bytes);
    writer.varint(index - next_exception_);
    writer.unsigned_of(bits, sizeof(Bits));
    next_exception_ = index + 1;
    ++exceptions_.count;
  }

  void note_symbols(const std::uint8_t* special, const std::uint32_t* sums, const std::int32_t* codes,
                    std::size_t first) {
    std::uint16_t* const symbols = memory_.symbols + first;
    spec_.kernels->residuals.symbols(sums, codes, extents_.columns, symbols);
    memory_.counts.note(symbols, special, extents_.columns);
  }

  Result<std::size_t> write(std::span<std::uint8_t> out) {
    Vector<std::uint8_t> head;
    write_raster_head(model_, extents_.shape(), exceptions_, head);
    coding::fill_token_entries(model_.distributions, memory_.entries);
    coding::StreamWriter streams({memory_.words, memory_.words_count}, model_.stream_bits);
    const coding::CodedRows coded{memory_.codes, memory_.symbols, rows(), nullptr, extents_.columns};
    if (!streams.encode_rows(spec_.kernels->residuals, memory_.entries, coded)) return raw(out);
    Writer writer(head);
    streams.append_sizes(writer);
    if (head.size() + streams.bytes() > 1 + memory_.elems * sizeof(Bits)) return raw(out);
    std::memcpy(out.data(), head.data(), head.size());
    streams.copy_words(out.data() + head.size());
    return head.size() + streams.bytes();
  }

  std::size_t rows() const { return extents_.planes * extents_.rows; }

  const EncodeSpec& spec_;
  const ConstBox3& in_;
  EncodeMemory& memory_;
  std::span<std::uint8_t> scratch_;
  StencilExtents extents_;
  const Bits* data_;
  RasterModel model_;
  coding::BinCounts counts_{};
  RasterExceptions exceptions_;
  std::size_t next_exception_ = 0;
  bool watched_ = false;   ///< see codes_may_fall_short
  bool exact_ = true;      ///< no value has been larger than this so far
  double most_exact_ = 0;  ///< values up to here have exact sums
};

}  // namespace

std::size_t encode_scratch_bytes(const EncodeSpec& spec) {
  if (spec.prequantized) {
    EncodeSpec as_it_is = spec;
    as_it_is.prequantized = false;
    return std::max(encode_scratch_bytes(as_it_is), encode_scratch_bytes(integer_spec(spec)));
  }
  Arena arena(nullptr);
  const EncodeMemory memory(arena, spec.most, spec.raw_bytes());
  // Chunks at the upper ends may be planes where full ones are volumes, and the other way round.
  const std::size_t raster = arena.used() + arena.used() / 8 + 65536;
  if (spec.form.wavelet) return std::max(raster, wavelet_encode_scratch_bytes(spec));
  if (!spec.form.levels) return raster;
  // Here those at the upper ends may be much smaller than full ones.
  return std::max(raster + most_fit_bytes(spec.most), levels_encode_scratch_bytes(spec));
}

Result<std::size_t> encode_chunk(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> out,
                                 std::span<std::uint8_t> scratch) {
  Arena arena(scratch.data());
  EncodeMemory memory(arena, in.extents, spec.raw_bytes());
  if (arena.used() > scratch.size()) return Status(StatusCode::internal, "stencil: scratch is too small for a chunk");
  return with_element(spec.dtype, [&](auto element) -> Result<std::size_t> {
    return ChunkWriter<decltype(element)>(spec, in, memory, scratch).run(out);
  });
}

bool fit_raster_model(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch,
                      RasterModel& model) {
  Arena arena(scratch.data());
  EncodeMemory memory(arena, in.extents, spec.raw_bytes());
  if (arena.used() > scratch.size()) return false;
  return with_element(spec.dtype, [&](auto element) {
    return ChunkWriter<decltype(element)>(spec, in, memory, scratch).fit_alone(model);
  });
}

bool choose_levels_format(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch,
                          LevelsValueFormat& format, bool& narrow) {
  Arena arena(scratch.data());
  EncodeMemory memory(arena, in.extents, spec.raw_bytes());
  if (arena.used() > scratch.size()) return false;
  return with_element(spec.dtype, [&](auto element) {
    return ChunkWriter<decltype(element)>(spec, in, memory, scratch).levels_format(format, narrow);
  });
}

bool wavelet_range(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch, ChunkRange& range) {
  Arena arena(scratch.data());
  EncodeMemory memory(arena, in.extents, spec.raw_bytes());
  if (arena.used() > scratch.size()) return false;
  return with_element(spec.dtype, [&](auto element) {
    return ChunkWriter<decltype(element)>(spec, in, memory, scratch).range_for_wavelet(range);
  });
}

Result<ChunkCost> estimate_chunk(const EncodeSpec& spec, const ConstBox3& in, std::span<std::uint8_t> scratch) {
  Arena arena(scratch.data());
  EncodeMemory memory(arena, in.extents, spec.raw_bytes());
  if (arena.used() > scratch.size()) return Status(StatusCode::internal, "stencil: scratch is too small for a chunk");
  return with_element(spec.dtype, [&](auto element) -> Result<ChunkCost> {
    return ChunkWriter<decltype(element)>(spec, in, memory, scratch).estimate();
  });
}

}  // namespace quern::codec::stencil
