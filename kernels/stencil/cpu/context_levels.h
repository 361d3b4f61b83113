// Context levels of sums, for loops that vectorize.
#pragma once

#include <bit>
#include <cstdint>

namespace quern::kernels {

template <class Isa>
struct ContextLevels {
  /// Place of the leading bit, 2 <= v: the exponent of a binary32 that rounding cannot carry into the next octave, as
  /// the bit below the leading one is taken out.
  [[gnu::always_inline]] static std::uint32_t leading_bit(std::uint32_t v) {
    const std::uint32_t half = (v & ~(v >> 1)) >> 1;
    return (std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<std::int32_t>(half))) >> 23) - 126;
  }
  [[gnu::always_inline]] static std::uint32_t context_level(std::uint32_t sum) {
    sum = sum > 2 ? sum : 2;
    const std::uint32_t leading = leading_bit(sum);
    return 2 * leading + (sum >> (leading - 1) & 1);
  }
};

}  // namespace quern::kernels
