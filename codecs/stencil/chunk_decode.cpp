// Bytes to a chunk. The bytes are hostile: whatever they are, nothing is read or written out of bounds.
#include <cstring>
#include <type_traits>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/elements.h"
#include "codecs/stencil/exceptions.h"
#include "codecs/stencil/lattice/chunk.h"
#include "codecs/stencil/levels/chunk.h"
#include "codecs/stencil/prequantized_chunk.h"
#include "codecs/stencil/raster/loop.h"
#include "codecs/stencil/raster/model.h"
#include "codecs/stencil/raster/planes.h"
#include "codecs/stencil/raster/waves.h"
#include "codecs/stencil/wavelet/chunk.h"
#include "coding/stream_reader.h"
#include "coding/token_tables.h"
#include "kernels/entropy/rans.h"
#include "kernels/stencil/rules.h"
#include "libcompress/format/reader.h"

namespace quern::codec::stencil {
namespace {

using kernels::RansSource;
using kernels::StencilExtents;

struct DecodeRow {
  const std::int64_t* far = nullptr;
  const std::uint32_t* context = nullptr;
  const std::uint16_t* zeros = nullptr;  ///< frequencies of token 0 where the two before in the row are 0
  const std::uint8_t* special = nullptr;
  double* values = nullptr;
  std::uint32_t* magnitudes = nullptr;
};

/// `tables` has one entry for each context bin.
template <std::size_t N, bool WithSpecial>
void decode_row(const DecodeRow& row, const SplitWeights& split, const RasterModel& model,
                const kernels::TokenTable* const* tables, std::size_t columns, RansSource& stream) {
  const unsigned weight_bits = model.format.weight_bits;
  const unsigned fraction_bits = model.format.fraction_bits;
  const std::uint32_t w0 = model.context_weights[0];
  const std::uint32_t w1 = model.context_weights[1];
  RansSource source = stream;
  NearValues<N> near(row.values);
  std::uint32_t m0 = 0;
  std::uint32_t m1 = 0;
  for (std::size_t x = 0; x < columns; ++x) {
    const std::int64_t predicted = kernels::scaled_down(near.sum(row.far[x], split.near), weight_bits);
    std::int64_t value = 0;
    std::uint32_t magnitude = 0;
    if (WithSpecial && row.special[x] != 0) {
      value = near.last[0];
    } else if ((m0 | m1) == 0 && kernels::decode_zero(source, row.zeros[x])) {
      value = predicted;
    } else {
      const std::int64_t code =
          kernels::decode_residual(source, *tables[kernels::context_bin(row.context[x] + w0 * m0 + w1 * m1)]);
      value = static_cast<std::int64_t>(static_cast<std::uint64_t>(predicted) +
                                        (static_cast<std::uint64_t>(code) << fraction_bits));
      magnitude = kernels::capped_magnitude(code, kernels::kMaxContextMagnitude);
    }
    row.magnitudes[x] = magnitude;
    m1 = m0;
    m0 = magnitude;
    // Encoders keep values below 2^51; others are cut so that binary64 holds them.
    row.values[x] = static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << 11) >> 11);
    near.push(value);
  }
  stream = source;
}

struct DecodeMemory {
  DecodeMemory(Arena& arena, const std::array<std::uint64_t, 3>& extents)
      : planes(arena, kernels::stencil_extents(extents), false),
        waves(arena, kernels::stencil_extents(extents)),
        tables(arena.take<kernels::TokenTable>(kernels::kContextBins)),
        zeros(arena.take<std::uint16_t>(row_room(static_cast<std::size_t>(extents[2])))) {}
  WorkPlanes planes;
  RasterWaves waves;
  kernels::TokenTable* tables;
  std::uint16_t* zeros;  ///< of a row: see DecodeRow
};

template <class Element>
class ChunkReader {
 public:
  using Bits = typename Element::Bits;

  ChunkReader(const ChunkSpec& spec, const MutableBox3& out)
      : spec_(spec), out_(out), extents_(kernels::stencil_extents(out.extents)), data_(static_cast<Bits*>(out.data)) {}

  Status run(std::span<const std::uint8_t> in, DecodeMemory& memory) {
    if (in.empty()) return corrupt("stencil: a chunk is empty");
    const std::uint8_t mode = in[0];
    in = in.subspan(1);
    if (mode == static_cast<std::uint8_t>(Mode::raw)) return raw(in);
    if (mode == static_cast<std::uint8_t>(Mode::constant)) return constant(in);
    if (mode == static_cast<std::uint8_t>(Mode::raster)) return raster(in, memory);
    return corrupt("stencil: a chunk of an unknown kind");
  }

 private:
  static Status corrupt(const char* text) { return Status(StatusCode::corrupt, text); }
  std::size_t rows() const { return extents_.planes * extents_.rows; }

  Status raw(std::span<const std::uint8_t> in) const {
    const std::size_t bytes = extents_.columns * sizeof(Bits);
    if (in.size() != rows() * bytes) return corrupt("stencil: a raw chunk has the wrong size");
    for (std::size_t r = 0; r < rows(); ++r) std::memcpy(data_ + row_offset(out_, r), in.data() + r * bytes, bytes);
    return {};
  }

  Status constant(std::span<const std::uint8_t> in) const {
    if (in.size() != sizeof(Bits)) return corrupt("stencil: a constant chunk has the wrong size");
    Bits value;
    std::memcpy(&value, in.data(), sizeof(value));
    for (std::size_t r = 0; r < rows(); ++r) std::fill_n(data_ + row_offset(out_, r), extents_.columns, value);
    return {};
  }

  Status raster(std::span<const std::uint8_t> in, DecodeMemory& memory) {
    QUERN_RETURN_IF_ERROR(read_raster_model(in, extents_, model_));
    if (model_.format.masked != (out_.special != nullptr)) return corrupt("stencil: a chunk and its mask do not agree");
    Reader reader(in);
    QUERN_ASSIGN_OR_RETURN(const std::uint64_t exceptions, reader.varint(extents_.elems()));
    const Reader exceptions_at = reader;
    QUERN_RETURN_IF_ERROR(check_exceptions<Bits>(reader, exceptions, extents_.elems()));
    if (std::size_t{1} << model_.stream_bits > rows()) return corrupt("stencil: more streams than rows");
    QUERN_RETURN_IF_ERROR(streams_.open(model_.stream_bits, reader, in));
    QUERN_RETURN_IF_ERROR(decode_rows(memory));
    Reader again = exceptions_at;
    return put_exceptions<Bits>(again, exceptions, extents_.elems(), out_);
  }

  Status decode_rows(DecodeMemory& memory) {
    coding::ServingTables tables{};
    QUERN_RETURN_IF_ERROR(coding::fill_token_tables(model_.distributions, memory.tables, tables));
    const kernels::ResidualTables by_bin(memory.tables, tables);
    std::array<SplitWeights, kernels::kRowClasses> split;
    for (std::size_t c = 0; c < split.size(); ++c) split[c] = split_weights(extents_.shape(), c, model_);
    if (memory.waves.serve(model_, *spec_.kernels)) {
      kernels::DecodeStreams streams(streams_.used());
      memory.waves.start(extents_, model_);
      if (decode_waves(split, by_bin, tables.data(), streams, memory))
        return ended(streams.failed != 0, streams.finished());
    }
    WorkPlanes& planes = memory.planes;
    planes.clear();
    for (std::size_t p = 0; p < extents_.planes; ++p) {
      if (model_.mean) planes.update_mean(*spec_.kernels, p);
      for (std::size_t r = 0; r < extents_.rows; ++r) {
        RansSource& stream = streams_.sources[(p * extents_.rows + r) & streams_.mask];
        one_row(p, r, split[kernels::row_class(extents_, p, r)], by_bin, tables.data(), memory, stream);
        if (stream.failed) return ended(true, false);
        store(planes.values(p, r), p * extents_.rows + r);
      }
    }
    return ended(false, streams_.finished());
  }

  static Status ended(bool failed, bool finished) {
    if (failed) return corrupt("stencil: a stream is too short");
    return finished ? Status() : corrupt("stencil: a stream does not end where it should");
  }

  void one_row(std::size_t p, std::size_t r, const SplitWeights& weights, const kernels::ResidualTables& by_bin,
               const kernels::TokenTable* const* tables, DecodeMemory& memory, RansSource& stream) {
    WorkPlanes& planes = memory.planes;
    planes.start_row(p, r);
    const DecodeRow row{planes.far_sums(*spec_.kernels, p, r, weights),
                        planes.context_sums(*spec_.kernels, p, r, model_),
                        memory.zeros,
                        special_row(out_, p * extents_.rows + r),
                        planes.values(p, r),
                        planes.magnitudes(p, r)};
    spec_.kernels->residuals.zero_frequencies(row.context, by_bin, extents_.columns, memory.zeros);
    const auto decode = [&](auto near_taps) {
      constexpr std::size_t kNear = decltype(near_taps)::value;
      if (row.special != nullptr) {
        decode_row<kNear, true>(row, weights, model_, tables, extents_.columns, stream);
      } else {
        decode_row<kNear, false>(row, weights, model_, tables, extents_.columns, stream);
      }
    };
    if (weights.near_count > 3) {
      decode(std::integral_constant<std::size_t, kernels::kMaxNearTaps>());
    } else {
      decode(std::integral_constant<std::size_t, 3>());
    }
    planes.finish_row(p, r);
  }

  void store(const double* values, std::size_t number) const {
    Bits* const to = data_ + row_offset(out_, number);
    const double unit = model_.format.unit();
    if constexpr (std::is_same_v<Element, F32>) {
      spec_.kernels->decode.store_singles(values, unit, model_.format.base, extents_.columns, to);
    } else {
      for (std::size_t x = 0; x < extents_.columns; ++x) to[x] = Element::bits(values[x] * unit + model_.format.base);
    }
  }

  /// The same with rows side by side, until a stream fails. False when a value is too large for that.
  bool decode_waves(const std::array<SplitWeights, kernels::kRowClasses>& split, const kernels::ResidualTables& by_bin,
                    const kernels::TokenTable* const* tables, kernels::DecodeStreams& streams, DecodeMemory& memory) {
    WorkPlanes& planes = memory.planes;
    planes.clear();
    for (std::size_t p = 0; p < extents_.planes && streams.failed == 0; ++p) {
      if (model_.mean) planes.update_mean(*spec_.kernels, p);
      const std::size_t place = (p * extents_.rows) & streams.mask;
      RansSource stream = streams.source(place);
      one_row(p, 0, split[kernels::row_class(extents_, p, 0)], by_bin, tables, memory, stream);
      streams.set(place, stream);
      if (!memory.waves.exact({planes.values(p, 0), extents_.columns})) return false;
      store(planes.values(p, 0), p * extents_.rows);
      for (std::size_t r = 1; r < extents_.rows && streams.failed == 0;) {
        const SplitWeights& weights = split[kernels::row_class(extents_, p, r)];
        if (!memory.waves.decode(*spec_.kernels, planes, p, r, weights, model_, by_bin, streams)) return false;
        for (const std::size_t end = r + RasterWaves::rows_from(planes, r); r < end; ++r)
          store(planes.values(p, r), p * extents_.rows + r);
      }
    }
    return true;
  }

  const ChunkSpec& spec_;
  const MutableBox3& out_;
  StencilExtents extents_;
  Bits* data_;
  RasterModel model_;
  coding::StreamReader streams_;
};

}  // namespace

std::size_t decode_scratch_bytes(const ChunkSpec& spec) {
  if (dtype_bytes(spec.dtype) < sizeof(std::int32_t)) {
    // Codes of prequantized elements do not fit into the elements' memory.
    Arena codes(nullptr);
    static_cast<void>(codes.take<std::int32_t>(spec.raw_bytes() / dtype_bytes(spec.dtype)));
    return codes.used() + decode_scratch_bytes(integer_spec(spec));
  }
  Arena arena(nullptr);
  const DecodeMemory memory(arena, spec.most);
  const std::size_t raster = arena.used() + arena.used() / 8 + 65536;
  if (spec.form.wavelet) return std::max(raster, wavelet_decode_scratch_bytes(spec));
  return spec.form.levels ? std::max(raster, levels_decode_scratch_bytes(spec)) : raster;
}

Status decode_chunk(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                    std::span<std::uint8_t> scratch) {
  if (!in.empty() && in[0] == static_cast<std::uint8_t>(Mode::lattice)) {
    in = in.subspan(1);
    QUERN_ASSIGN_OR_RETURN(const Lattice lattice, read_lattice(spec.dtype, in));
    QUERN_RETURN_IF_ERROR(decode_chunk(integer_spec(spec), in, integer_box(spec.dtype, out), scratch));
    spread_lattice(lattice, spec.dtype, out);
    return {};
  }
  if (!in.empty() && in[0] == static_cast<std::uint8_t>(Mode::prequantized))
    return decode_prequantized(spec, in.subspan(1), out, scratch);
  if (!in.empty() && is_in_levels(in[0]))
    return decode_levels(spec, in.subspan(1), in[0] == static_cast<std::uint8_t>(Mode::levels_edges), out, scratch);
  if (!in.empty() && in[0] == static_cast<std::uint8_t>(Mode::wavelet))
    return decode_wavelet(spec, in.subspan(1), out, scratch);
  Arena arena(scratch.data());
  DecodeMemory memory(arena, out.extents);
  if (arena.used() > scratch.size()) return Status(StatusCode::internal, "stencil: scratch is too small for a chunk");
  return with_element(
      spec.dtype, [&](auto element) -> Status { return ChunkReader<decltype(element)>(spec, out).run(in, memory); });
}

}  // namespace quern::codec::stencil
