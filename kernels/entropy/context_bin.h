// The context bin of a residual: which of the stored distributions its context selects. CPU and device use this
// function; kernels/entropy/cpu/context_bins.h has the same rule for vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"

namespace quern::kernels {

inline constexpr std::uint32_t kContextBins = 64;

/// Bin of a context sum: two bins an octave, the lowest ones for sums of up to 2. In 2 .. kContextBins - 1.
[[gnu::always_inline]] constexpr std::uint32_t context_bin(std::uint32_t sum) {
  const std::uint32_t s = sum > 2 ? sum : 2;
  const std::uint32_t leading = bit_length(s) - 1;
  return 2 * leading + (s >> (leading - 1) & 1);
}
static_assert(context_bin(0) == 2 && context_bin(3) == 3 && context_bin(UINT32_MAX) == kContextBins - 1);

}  // namespace quern::kernels
