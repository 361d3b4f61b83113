// Rounding to the nearest integer, ties to even, by one addition. The sum v + 1.5 * 2^52 has no bits for a fraction, so
// the addition rounds, and the sum's low bits are the integer in two's complement. binary32 takes 1.5 * 2^23 in the
// same way. Hosts and devices round by these functions alone; common/cpu/round_vectors.h has their vector forms.
#pragma once

#include <bit>
#include <cstdint>

namespace quern::kernels {

/// What is added: for binary64 to |v| < 2^51, for binary32 to |v| < 2^22.
inline constexpr double kRoundingShift64 = 0x1.8p52;
inline constexpr float kRoundingShift32 = 0x1.8p23f;
/// Their bit patterns; a sum's pattern less this one is the integer, modulo 2^64 or 2^32.
inline constexpr std::uint64_t kRoundingBits64 = std::bit_cast<std::uint64_t>(kRoundingShift64);
inline constexpr std::uint32_t kRoundingBits32 = std::bit_cast<std::uint32_t>(kRoundingShift32);

/// The nearest integer as a number, ties to even; |v| < 2^51.
[[gnu::always_inline]] constexpr double nearest(double v) { return (v + kRoundingShift64) - kRoundingShift64; }

/// The nearest integer, ties to even; |v| < 2^51, else some integer.
[[gnu::always_inline]] constexpr std::int64_t nearest_integer(double v) {
  return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(v + kRoundingShift64) - kRoundingBits64);
}
/// The same of binary32; |v| < 2^22, else some integer.
[[gnu::always_inline]] constexpr std::int32_t nearest_integer(float v) {
  return static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(v + kRoundingShift32) - kRoundingBits32);
}

/// An integer as a number: exact for -2^51 <= v < 2^51, else some number. Not every machine converts 64 bits at once.
[[gnu::always_inline]] constexpr double number_of(std::int64_t v) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(v) + kRoundingBits64) - kRoundingShift64;
}

}  // namespace quern::kernels
