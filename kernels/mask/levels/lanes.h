// Interleaved rANS of binary symbols: symbol i of a batch belongs to lane i modulo the number of lanes. Lanes share the
// words of their group of 32, which are taken in the order of symbols. Host and device code use it alike.
#pragma once

#include <cstdint>

#include "kernels/mask/levels/models.h"

namespace quern::kernels {

inline constexpr unsigned kFewestLevelLanes = 4;
inline constexpr unsigned kMostLevelLanes = 256;
inline constexpr unsigned kLevelGroupLanes = 32;  ///< of a group that shares words
inline constexpr std::uint32_t kLevelStateLow = 1U << 16;

/// Lanes that a writer takes for that many symbols.
constexpr unsigned level_lanes_for(std::uint64_t symbols) {
  constexpr std::uint64_t kOfLane = 8192;
  unsigned lanes = kFewestLevelLanes;
  while (lanes < kMostLevelLanes && lanes * kOfLane < symbols) lanes *= 2;
  return lanes;
}
constexpr unsigned level_groups(unsigned lanes) { return (lanes + kLevelGroupLanes - 1) / kLevelGroupLanes; }

/// Takes a symbol from a state; `p` is the probability of a one. What is left is below kLevelStateLow where a word must
/// follow.
[[gnu::always_inline]] constexpr unsigned take_level_symbol(std::uint32_t& state, std::uint32_t p) {
  const std::uint32_t v = state % kLevelOne;
  const unsigned one = v >= kLevelOne - p ? 1 : 0;
  const std::uint32_t frequency = one != 0 ? p : kLevelOne - p, start = one != 0 ? kLevelOne - p : 0;
  state = frequency * (state / kLevelOne) + v - start;
  return one;
}

/// The way back: true when the low word of the state must be put away first (and was shifted out into `word`).
[[gnu::always_inline]] constexpr bool put_level_symbol(std::uint32_t& state, std::uint32_t p, unsigned one,
                                                       std::uint16_t& word) {
  const std::uint32_t frequency = one != 0 ? p : kLevelOne - p, start = one != 0 ? kLevelOne - p : 0;
  const bool full = state >= frequency << (32 - kLevelProbabilityBits);
  if (full) {
    word = static_cast<std::uint16_t>(state);
    state >>= 16;
  }
  state = state / frequency * kLevelOne + state % frequency + start;
  return full;
}

}  // namespace quern::kernels
