// Entry points of the kernels that only decoders of the stencil codec need: values from residuals. All instruction sets
// give the same numbers, whatever the bytes are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/entropy/cpu/decode_streams.h"
#include "kernels/stencil/cpu/raster_wave.h"

namespace quern::kernels {

inline constexpr std::size_t kLiftedLines = 32;  ///< of a wavelet transform, side by side

struct StencilDecodeKernels {
  /// Decodes rows side by side, or null where vectors are not long enough for that. There are kWaveRows streams or
  /// more. False when a value is not below wave.most: then nothing that was written has a meaning.
  bool (*decode_wave)(const RasterWave& wave, const ResidualTables& tables, DecodeStreams& lanes);
  /// out[x] = values[x] * unit + base, rounded to binary32, as bits.
  void (*store_singles)(const double* values, double unit, double base, std::size_t count, std::uint32_t* out);
  /// sums[x] += weight * row[x], modulo 2^32; with `twice`, sums[2 * x] and sums[2 * x + 1] grow by that.
  void (*add_row)(const std::uint32_t* row, std::uint32_t weight, std::size_t count, bool twice, std::uint32_t* sums);
  /// out[x] = ((|codes[x]| * 64 + offsets[|codes[x]| == 1 ? 0 : 1]) * step) >> 6 with the sign of the code, 0 for 0;
  /// modulo 2^64.
  void (*scale_codes)(const std::int32_t* codes, const std::array<int, 2>& offsets, std::int64_t step,
                      std::size_t count, double* out);
  /// values[x] += codes[x] * factor
  void (*add_scaled)(const std::int32_t* codes, double factor, std::size_t count, double* values);
  /// One step of lifting: to[j] += nearest((left[j] + right[j]) * factor / 2^16) for kLiftedLines lines, at `count`
  /// places, each kLiftedLines behind the one before. `left` and `right` run along, but not before the first nor
  /// behind the last of the `others` places from `other` on: left is place i - back, right is place i - back + 1.
  void (*lift)(double* to, std::size_t count, const double* other, std::size_t others, std::size_t back, double factor);
};

}  // namespace quern::kernels
