// Entry points of the kernels that only decoders of the stencil codec need: residuals from many lanes side by side, and
// values from them. All instruction sets give the same numbers, whatever the bytes are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/entropy/rans.h"
#include "kernels/entropy/token_table.h"
#include "kernels/stencil/cpu/raster_wave.h"

namespace quern::kernels {

inline constexpr std::size_t kMostResidualLanes = 32;
inline constexpr std::size_t kResidualLevels = 64;         ///< context levels
inline constexpr std::size_t kLiftedLines = 32;            ///< of a wavelet transform, side by side
inline constexpr std::uint8_t kNoResidual = 255;           ///< level of an element that has no code; the code is 0
inline constexpr std::uint64_t kMostLaneBytes = 1u << 31;  ///< of all lanes together

/// Lanes that elements take turns in. Places are counted in words of 16 bits from `words`.
struct ResidualLanes {
  alignas(64) std::array<std::uint32_t, kMostResidualLanes> states{};
  alignas(64) std::array<std::uint32_t, kMostResidualLanes> at{};  ///< at least 2
  alignas(64) std::array<std::uint32_t, kMostResidualLanes> end{};
  const std::uint8_t* words = nullptr;
  std::uint32_t failed = 0;  ///< one bit a lane
  std::size_t mask = 0;      ///< how many there are, less one

  /// All sources lie in one range of bytes, at most kMostLaneBytes, in order.
  explicit ResidualLanes(std::span<const RansSource> sources);
  [[gnu::always_inline]] RansSource source(std::size_t lane) const {
    return {words + std::size_t{2} * at[lane], words + std::size_t{2} * end[lane], states[lane],
            (failed >> lane & 1) != 0};
  }
  [[gnu::always_inline]] void set(std::size_t lane, const RansSource& source) {
    at[lane] = static_cast<std::uint32_t>((source.at - words) / 2);
    states[lane] = source.state;
    failed |= static_cast<std::uint32_t>(source.failed) << lane;
  }
  bool finished() const;
};

/// Tables of tokens by context level.
struct ResidualTables {
  const TokenTable* tables = nullptr;
  alignas(64) std::array<std::uint16_t, kResidualLevels> places{};  ///< of the table that serves a level
  alignas(64) std::array<std::uint16_t, kResidualLevels> zeros{};   ///< frequency of token 0 there

  ResidualTables(const TokenTable* first, const std::array<const TokenTable*, kResidualLevels>& serving)
      : tables(first) {
    for (std::size_t l = 0; l < kResidualLevels; ++l) {
      places[l] = static_cast<std::uint16_t>(serving[l] - first);
      zeros[l] = serving[l]->starts[1];
    }
  }
};

struct StencilDecodeKernels {
  /// codes[x] = residual of level contexts[x], from lane (first + x) & lanes.mask, for x < count.
  void (*take_residuals)(ResidualLanes& lanes, const ResidualTables& tables, const std::uint8_t* contexts,
                         std::size_t count, std::size_t first, std::int32_t* codes);
  /// Decodes rows side by side, or null where vectors are not long enough for that. There are kWaveRows lanes or more.
  /// False when a value is not below wave.most: then nothing that was written has a meaning.
  bool (*decode_wave)(const RasterWave& wave, const ResidualTables& tables, ResidualLanes& lanes);
  /// out[x] = frequency of token 0 in the level of sums[x].
  void (*zero_frequencies)(const std::uint32_t* sums, const ResidualTables& tables, std::size_t count,
                           std::uint16_t* out);
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
