// Decoding kernels of the stencil codec for one instruction set; part of instance.h.
#pragma once

#include <bit>

#include "kernels/stencil/cpu/decode.h"
#include "kernels/stencil/cpu/raster_wave_vectors.h"
#include "kernels/stencil/wavelet_quantize.h"

namespace quern::kernels {

template <class Isa>
struct StencilDecodeInstance {
  static void add_row(const std::uint32_t* row, std::uint32_t weight, std::size_t count, bool twice,
                      std::uint32_t* sums) {
    if (!twice) {
      for (std::size_t x = 0; x < count; ++x) sums[x] += weight * row[x];
      return;
    }
    for (std::size_t x = 0; x < count; ++x) {
      const std::uint32_t value = weight * row[x];
      sums[2 * x] += value;
      sums[2 * x + 1] += value;
    }
  }

  static void scale_codes(const std::int32_t* codes, const std::array<int, 2>& offsets, std::int64_t step,
                          std::size_t count, double* out) {
    const std::int64_t one = offsets[0];
    const std::int64_t more = offsets[1];
    for (std::size_t x = 0; x < count; ++x) out[x] = wavelet_coefficient(codes[x], one, more, step);
  }

  static void add_scaled(const std::int32_t* codes, double factor, std::size_t count, double* values) {
    for (std::size_t x = 0; x < count; ++x) values[x] += codes[x] * factor;
  }

  static void lift(double* to, std::size_t count, const double* other, std::size_t others, std::size_t back,
                   double factor) {
    for (std::size_t i = 0; i < count; ++i) {
      const double* const left = other + (i > back ? i - back : 0) * kLiftedLines;
      const std::size_t next = i + 1 - back;
      const double* const right = other + (next < others ? next : others - 1) * kLiftedLines;
      double* const place = to + i * kLiftedLines;
      for (std::size_t j = 0; j < kLiftedLines; ++j) place[j] = lifted(place[j], left[j], right[j], factor);
    }
  }

  [[gnu::always_inline]] static std::uint32_t single(double value, double unit, double base) {
    return std::bit_cast<std::uint32_t>(static_cast<float>(value * unit + base));
  }
  static void store_singles(const double* values, double unit, double base, std::size_t count, std::uint32_t* out) {
    for (std::size_t x = 0; x < count; ++x) out[x] = single(values[x], unit, base);
  }
  static constexpr auto wave_decoder() -> bool (*)(const RasterWave&, const ResidualTables&, DecodeStreams&) {
    if constexpr (RasterWaveVectors<Isa>::kThere) {
      return &RasterWaveVectors<Isa>::decode;
    } else {
      return nullptr;
    }
  }
  static constexpr StencilDecodeKernels kKernels{wave_decoder(), &store_singles, &add_row,
                                                 &scale_codes,   &add_scaled,    &lift};
};

}  // namespace quern::kernels
