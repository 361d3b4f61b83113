// Bytes to a chunk under the wavelet transform. The bytes are hostile: whatever they are, nothing is read or written
// out of bounds.
#include <algorithm>
#include <type_traits>

#include "codecs/stencil/elements.h"
#include "codecs/stencil/exceptions.h"
#include "codecs/stencil/levels/chunk.h"
#include "codecs/stencil/levels/coarse_positions.h"
#include "codecs/stencil/wavelet/chunk.h"
#include "codecs/stencil/wavelet/context.h"
#include "codecs/stencil/wavelet/lifting.h"
#include "codecs/stencil/wavelet/model.h"
#include "coding/stream_reader.h"
#include "coding/token_tables.h"
#include "kernels/stencil/rules.h"
#include "libcompress/core/arena.h"

namespace quern::codec::stencil {
namespace {

struct DecodeMemory {
  DecodeMemory(Arena& arena, const WaveletAxes& axes)
      : values(arena.take<double>(axes.elems())),
        magnitudes(arena.take<std::uint32_t>(axes.elems())),
        corrections(arena.take<std::uint32_t>(axes.elems())),
        room(arena.take<double>(lifting_room(axes))),
        sums(arena.take<std::uint32_t>(longest_extent(axes))),
        codes(arena.take<std::int32_t>(longest_extent(axes))),
        zeros(arena.take<std::uint16_t>(longest_extent(axes))),
        constants(arena.take<std::uint16_t>(kMaxWaveletGroups)),
        tables(arena.take<kernels::TokenTable>(kernels::kContextBins)) {}

  double* values;
  std::uint32_t* magnitudes;   ///< of coefficients
  std::uint32_t* corrections;  ///< their magnitudes
  double* room;
  std::uint32_t* sums;
  std::int32_t* codes;
  std::uint16_t* zeros;  ///< frequencies of token 0 where the two before in the row are 0
  std::uint16_t* constants;
  kernels::TokenTable* tables;
};

template <class Element>
class WaveletReader {
 public:
  using Bits = typename Element::Bits;

  WaveletReader(const kernels::StencilKernels& kernels, const MutableBox3& out, const LevelsView& view,
                DecodeMemory& memory)
      : kernels_(kernels), out_(out), view_(view), memory_(memory) {
    model_.axes = wavelet_axes(view);
    model_.constants = memory.constants;
  }

  Status run(std::span<const std::uint8_t> in) {
    QUERN_RETURN_IF_ERROR(open(in));
    const kernels::ResidualTables by_bin(memory_.tables, tables_);
    QUERN_RETURN_IF_ERROR(coefficients(by_bin, 0));
    inverse_wavelet(axes(), kernels_, memory_.values, memory_.room);
    QUERN_RETURN_IF_ERROR(corrections(by_bin));
    if (!streams_.finished()) return corrupt("stencil: a stream does not end where it should");
    return put_exceptions<Bits>(exceptions_at_, exceptions_, axes().elems(), out_);
  }

  /// Decodes the low values of a level of the chunk, along an axis that has fewer those of its last, and gives them as
  /// means. `to_places(levels)` says where they go.
  template <class ToPlaces>
  Status run_coarse(std::span<const std::uint8_t> in, unsigned level, const ToPlaces& to_places) {
    QUERN_RETURN_IF_ERROR(open(in));
    QUERN_RETURN_IF_ERROR(coefficients(kernels::ResidualTables(memory_.tables, tables_), level));
    inverse_wavelet(axes(), kernels_, memory_.values, memory_.room, level);
    std::array<unsigned, kMaxAxes> has{};
    for (std::size_t a = 0; a < axes().rank; ++a) has[a] = std::min(level, axes().levels[a]);
    store_means(has, to_places(has));
    return {};
  }

 private:
  static Status corrupt(const char* text) { return Status(StatusCode::corrupt, text); }
  const WaveletAxes& axes() const { return model_.axes; }

  /// Reads all that comes before the streams.
  Status open(std::span<const std::uint8_t> in) {
    QUERN_RETURN_IF_ERROR(read_wavelet_model(in, model_));
    if (model_.masked != (out_.special != nullptr)) return corrupt("stencil: a chunk and its mask do not agree");
    Reader reader(in);
    QUERN_ASSIGN_OR_RETURN(exceptions_, reader.varint(axes().elems()));
    exceptions_at_ = reader;
    QUERN_RETURN_IF_ERROR(check_exceptions<Bits>(reader, exceptions_, axes().elems()));
    QUERN_RETURN_IF_ERROR(streams_.open(in.subspan(static_cast<std::size_t>(reader.position()))));
    return coding::fill_token_tables(model_.distributions, memory_.tables, tables_);
  }

  /// Decodes a row whose context sums lack what lies in the row itself. False when its stream is too short.
  bool take_row(const kernels::ResidualTables& by_bin, const WaveletWeights& weights, std::size_t columns,
                const std::uint8_t* special, std::size_t special_step, std::uint32_t* magnitudes) {
    kernels_.residuals.zero_frequencies(memory_.sums, by_bin, columns, memory_.zeros);
    kernels::RansSource& stream = streams_.sources[row_++ & streams_.mask];
    kernels::RansSource source = stream;
    const std::uint32_t w0 = weights[kWest];
    const std::uint32_t w1 = weights[kWestOfWest];
    std::uint32_t m0 = 0;
    std::uint32_t m1 = 0;
    for (std::size_t x = 0; x < columns; ++x) {
      std::int64_t code = 0;
      const bool coded = special == nullptr || special[x * special_step] == 0;
      if (coded && ((m0 | m1) != 0 || !kernels::decode_zero(source, memory_.zeros[x])))
        code = kernels::decode_residual(source, *tables_[kernels::context_bin(memory_.sums[x] + w0 * m0 + w1 * m1)]);
      memory_.codes[x] = static_cast<std::int32_t>(code);
      m1 = m0;
      m0 = kernels::capped_magnitude(code, kernels::kMaxWaveletMagnitude);
      magnitudes[x] = m0;
    }
    stream = source;
    return !source.failed;
  }

  /// Decodes the bands that low values of a level are made of, and what is coded before the last of them.
  Status coefficients(const kernels::ResidualTables& by_bin, unsigned level) {
    std::size_t left = 0;
    for_bands(axes(), [&](const WaveletBand& band) {
      left += band.holds(axes(), level) ? 1 : 0;
      return true;
    });
    bool complete = true;
    for_bands(axes(), [&](const WaveletBand& band) {
      const bool wanted = band.holds(axes(), level);
      complete = take_band(by_bin, band, wanted);
      left -= wanted ? 1 : 0;
      return complete && left > 0;
    });
    return complete ? Status{} : corrupt("stencil: a stream is too short");
  }

  bool take_band(const kernels::ResidualTables& by_bin, const WaveletBand& band, bool wanted) {
    const std::int64_t step = band_step(model_.step, band.gain);
    const std::size_t columns = band.columns();
    for (std::size_t r = 0; r < band.rows(); ++r) {
      const AxisValues index = band_row(axes(), band, r);
      std::fill_n(memory_.sums, columns, std::uint32_t{model_.constants[band.group]});
      for_sources(axes(), band, index, memory_.magnitudes, [&](std::size_t feature, const MagnitudeRow& source) {
        if (model_.weights[feature] != 0) add_row(source, model_.weights[feature], columns, kernels_, memory_.sums);
      });
      const std::size_t at = band_place(axes(), band, index);
      if (!take_row(by_bin, model_.weights, columns, nullptr, 0, memory_.magnitudes + at)) return false;
      if (wanted) kernels_.decode.scale_codes(memory_.codes, model_.offsets, step, columns, memory_.values + at);
    }
    return true;
  }

  /// Low values after `has` passes along each axis.
  void store_means(const std::array<unsigned, kMaxAxes>& has, const CoarsePlaces& to) const {
    const std::size_t rank = axes().rank;
    const std::size_t last = rank - 1;
    unsigned passes = 0;
    std::size_t rows = 1;
    for (std::size_t a = 0; a < rank; ++a) {
      passes += has[a];
      if (a < last) rows *= axes().points(a, has[a]);
    }
    const std::size_t columns = axes().points(last, has[last]);
    const double scale = mean_scale(passes);
    const double unit = model_.format.step;
    const double base = model_.format.base;
    const AxisValues strides = axes().strides();
    for (std::size_t r = 0; r < rows; ++r) {
      std::size_t from = 0;
      std::size_t row = 0;
      bool kept = true;
      std::size_t rest = r;
      for (std::size_t a = last; a-- > 0;) {
        const std::size_t index = rest % axes().points(a, has[a]);
        rest /= axes().points(a, has[a]);
        from += index * strides[a];
        kept = to.keep(index, a, row) && kept;
      }
      for (std::size_t x = 0; kept && x < columns; ++x) {
        std::size_t at = row;
        if (to.keep(x, last, at))
          static_cast<Bits*>(to.data)[at] = Element::bits(memory_.values[from + x] * scale * unit + base);
      }
    }
  }

  /// Corrects rows and stores them.
  Status corrections(const kernels::ResidualTables& by_bin) {
    const std::size_t last = axes().rank - 1;
    const std::size_t columns = axes().extents[last];
    const std::size_t rows = axes().elems() / columns;
    const double unit = model_.format.step;
    const double base = model_.format.base;
    const auto correction = static_cast<double>(model_.correction);
    for (std::size_t r = 0; r < rows; ++r) {
      const ChunkRow row = chunk_row(axes(), view_, r);
      double* const values = memory_.values + r * columns;
      if (model_.correction != 0) {
        std::fill_n(memory_.sums, columns, std::uint32_t{model_.correction_constant});
        for_correction_sources(axes(), row.index, memory_.corrections, memory_.magnitudes,
                               [&](std::size_t feature, const MagnitudeRow& source) {
                                 const std::uint32_t weight = model_.correction_weights[feature];
                                 if (weight != 0) add_row(source, weight, columns, kernels_, memory_.sums);
                               });
        const std::uint8_t* const mask = out_.special == nullptr ? nullptr : out_.special + row.special;
        if (!take_row(by_bin, model_.correction_weights, columns, mask, view_.special_strides[last],
                      memory_.corrections + r * columns))
          return corrupt("stencil: a stream is too short");
        kernels_.decode.add_scaled(memory_.codes, correction, columns, values);
      }
      Bits* const to = static_cast<Bits*>(out_.data) + row.at;
      const std::size_t step = view_.strides[last];
      if constexpr (std::is_same_v<Element, F32>) {
        if (step == 1) {
          kernels_.decode.store_singles(values, unit, base, columns, to);
          continue;
        }
      }
      for (std::size_t x = 0; x < columns; ++x) to[x * step] = Element::bits(values[x] * unit + base);
    }
    return {};
  }

  const kernels::StencilKernels& kernels_;
  const MutableBox3& out_;
  const LevelsView& view_;
  DecodeMemory& memory_;
  WaveletModel model_;
  coding::ServingTables tables_{};
  coding::StreamReader streams_;
  std::uint64_t exceptions_ = 0;
  Reader exceptions_at_{{}};
  std::size_t row_ = 0;
};

}  // namespace

std::size_t wavelet_decode_scratch_bytes(const ChunkSpec& spec) {
  Arena arena(nullptr);
  const DecodeMemory memory(arena, wavelet_axes(LevelsView(full_box(spec), spec.form)));
  return arena.used() + arena.used() / 8 + 65536;
}

namespace {

/// Calls decode(reader) for a reader of the chunk.
template <class Decode>
Status with_reader(const ChunkSpec& spec, const MutableBox3& chunk, std::span<std::uint8_t> scratch,
                   const Decode& decode) {
  if (!spec.form.wavelet) return Status(StatusCode::corrupt, "stencil: a chunk under a transform where none may be");
  const LevelsView view(chunk, spec.form);
  Arena measured(nullptr);
  const DecodeMemory needed(measured, wavelet_axes(view));
  if (measured.used() > scratch.size())
    return Status(StatusCode::internal, "stencil: scratch is too small for a chunk");
  Arena arena(scratch.data());
  DecodeMemory memory(arena, wavelet_axes(view));
  return with_element(spec.dtype, [&](auto element) -> Status {
    return decode(WaveletReader<decltype(element)>(*spec.kernels, chunk, view, memory), view);
  });
}

}  // namespace

Status decode_wavelet(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& out,
                      std::span<std::uint8_t> scratch) {
  return with_reader(spec, out, scratch, [&](auto reader, const LevelsView&) { return reader.run(in); });
}

Status decode_wavelet_coarse(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& chunk,
                             const LevelForm& form, unsigned level, const MutableBox3& out,
                             std::span<std::uint8_t> scratch) {
  return with_reader(spec, chunk, scratch, [&](auto reader, const LevelsView& view) {
    return reader.run_coarse(
        in, level, [&](const std::array<unsigned, kMaxAxes>& has) { return coarse_places(form, view, has, out); });
  });
}

}  // namespace quern::codec::stencil
