// Interleaved streams of residuals in a job: where a device finds their words and the distributions of their tokens. A
// host has checked the sizes; the words are hostile.
#pragma once

#include <cstdint>

#include "kernels/entropy/token_distribution.h"

namespace quern::kernels {

inline constexpr std::uint32_t kMostStreamLanes = 32;

/// Words of all sections are so many that this divides their number.
inline constexpr std::uint32_t kStreamWordAlignment = 8;

/// Lanes of a section: words [begins[i], begins[i + 1]) of the words of all sections, each lane's state included.
struct StreamSection {
  std::uint32_t mask = 0;  ///< how many lanes, less one: a power of 2
  std::uint32_t begins[kMostStreamLanes + 1] = {};
};

/// Sums of frequencies of one distribution (token_distribution.h), padded.
struct StreamStarts {
  std::uint16_t at[kResidualTokens + 2] = {};
};

}  // namespace quern::kernels
