// What a chunk stores before its residuals: fixed-point format, weights, contexts. Written and read here alone.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include <quern/memory.h>
#include <quern/status.h>

#include "kernels/entropy/residual_model.h"
#include "kernels/stencil/taps.h"

namespace quern::codec::stencil {

inline constexpr unsigned kMaxFractionBits = 10;  ///< of values
inline constexpr unsigned kMinWeightBits = 8;     ///< fraction bits of weights
inline constexpr unsigned kMaxWeightBits = 16;
inline constexpr unsigned kWeightSumBits = 4;  ///< magnitudes of a row class's weights sum to at most 2^this
inline constexpr unsigned kContextBits = 10;   ///< fraction bits of context weights
inline constexpr std::uint32_t kMaxContextWeight = (1u << 12) - 1;
inline constexpr std::uint32_t kMaxContextMagnitude = (1u << 18) - 1;  ///< larger ones count as this
inline constexpr std::size_t kLevels = 64;
inline constexpr unsigned kMaxLaneBits = 5;

/// Weights of one row class, in the order of taps_of().
using Weights = std::array<std::int32_t, kernels::kMaxTaps>;

/// Context level of a weighted sum of magnitudes: two levels an octave.
[[gnu::always_inline]] constexpr unsigned level_of(std::uint32_t sum) {
  const std::uint32_t s = sum > 2 ? sum : 2;
  const auto leading = static_cast<unsigned>(std::bit_width(s)) - 1;
  return 2 * leading + (s >> (leading - 1) & 1);
}

struct ChunkModel {
  double base = 0;             ///< value of code 0; its low 32 bits are zero
  double step = 0;             ///< distance of codes; its low 32 bits are zero
  unsigned fraction_bits = 0;  ///< values are kept in units of step / 2^fraction_bits
  unsigned weight_bits = 0;
  unsigned lane_bits = 0;  ///< residuals lie in 2^lane_bits lanes
  bool mean = false;       ///< later planes look at the mean of earlier ones, too
  bool masked = false;     ///< the segment has a mask
  std::int64_t low = 0;    ///< in levels: what special elements are kept within
  std::int64_t high = 0;
  std::array<bool, kernels::kRowClasses> has_weights{};
  std::array<Weights, kernels::kRowClasses> weights{};  ///< set for every class that occurs, stored or not
  std::array<std::uint32_t, kernels::kMaxContextTaps> context_weights{};
  std::uint32_t context_constant = 0;
  std::array<kernels::ResidualModel, kLevels> levels{};  ///< tokens == 0: absent

  /// Value of one unit.
  double unit() const { return step / static_cast<double>(1u << fraction_bits); }
};

/// Gives every class without stored weights those of another class, or Lorenzo's.
void complete_weights(kernels::StencilShape shape, ChunkModel& model);

/// The level whose model codes symbols of `level`: itself, else the next present one below, else above; kLevels if
/// none.
std::array<std::uint8_t, kLevels> level_map(const ChunkModel& model);

/// The largest double of at most that magnitude whose low 32 bits are zero.
inline double short_double(double v) { return std::bit_cast<double>(std::bit_cast<std::uint64_t>(v) >> 32 << 32); }

void write_model(const ChunkModel& model, kernels::StencilShape shape, Vector<std::uint8_t>& out);
/// Reads the model of a chunk and completes it; advances `bytes`. `corrupt` when it breaks a rule.
Status read_model(std::span<const std::uint8_t>& bytes, const kernels::StencilExtents& extents, ChunkModel& model);

}  // namespace quern::codec::stencil
