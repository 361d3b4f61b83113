// Context bins of sums on a CPU: the rule of kernels/entropy/context_bin.h for loops that vectorize and for vectors.
// The place of the leading bit is the exponent of a binary32 number.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/entropy/context_bin.h"

namespace quern::kernels {

template <class Isa>
struct ContextBins {
  /// Place of the leading bit of v >= 2. Without the bit below the leading one a number does not round into the next
  /// octave.
  [[gnu::always_inline]] static std::uint32_t leading_bit(std::uint32_t v) {
    const std::uint32_t half = (v & ~(v >> 1)) >> 1;
    return (std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(half))) >> 23) - 126;
  }
  /// context_bin(sum), in a loop over elements.
  [[gnu::always_inline]] static std::uint32_t bin_of(std::uint32_t sum) {
    sum = sum > 2 ? sum : 2;
    const std::uint32_t leading = leading_bit(sum);
    return 2 * leading + (sum >> (leading - 1) & 1);
  }
  /// context_bin of each sum. The vectors have as many elements: Words of 32-bit words, Integers of signed ones, Floats
  /// of binary32.
  template <class Floats, class Integers, class Words>
  [[gnu::always_inline]] static void bins_of(const Words& sums, Words& bins) {
    const Words some = sums > 2 ? sums : Words{} + 2;
    const Words halves = (some & ~(some >> 1)) >> 1;
    const auto real = __builtin_convertvector(reinterpret_cast<Integers>(halves), Floats);
    const Words leading = (reinterpret_cast<Words>(real) >> 23) - 126;
    bins = 2 * leading + (some >> (leading - 1) & 1);
  }
};

}  // namespace quern::kernels
