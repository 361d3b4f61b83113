// Integer helpers shared by all kernels: counts of bits, zigzag, high products, ordered keys, half-precision
// conversion. constexpr, no state.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

namespace quern::kernels {

/// Bits that are set. This and the two below stand in for <bit>, whose functions for trailing zeros and for 64-bit
/// words rest on builtins that nvcc takes in constexpr functions but makes nothing of on a device, without a word.
template <class W>
[[gnu::always_inline]] constexpr unsigned popcount(W w) {
  if constexpr (sizeof(W) <= 4) return static_cast<unsigned>(__builtin_popcount(w));
  return static_cast<unsigned>(__builtin_popcountll(w));
}
/// Number of the highest set bit, counted from 1; 0 where none is.
template <class W>
[[gnu::always_inline]] constexpr unsigned bit_length(W w) {
  if (w == 0) return 0;
  if constexpr (sizeof(W) <= 4) return 32 - static_cast<unsigned>(__builtin_clz(w));
  return 64 - static_cast<unsigned>(__builtin_clzll(w));
}
/// Index of the lowest set bit of a word that is not 0.
template <class W>
[[gnu::always_inline]] constexpr unsigned lowest_bit(W w) {
  return bit_length(static_cast<W>(w & (W{0} - w))) - 1;
}

/// Index of the lowest bit of a 32-bit word that is not set; 32 where all are.
[[gnu::always_inline]] constexpr unsigned lowest_clear_bit(std::uint32_t w) {
  return w == 0xffffffffu ? 32 : lowest_bit(~w);
}

/// Signed difference (two's complement in an unsigned word) to a small unsigned number: 0, -1, 1, -2, ... -> 0, 1, 2,
/// 3, ...
template <class W>
[[gnu::always_inline]] constexpr W zigzag(W d) {
  using S = std::make_signed_t<W>;
  return static_cast<W>(d << 1) ^ static_cast<W>(static_cast<S>(d) >> (8 * sizeof(W) - 1));
}
template <class W>
[[gnu::always_inline]] constexpr W unzigzag(W z) {
  return static_cast<W>(z >> 1) ^ static_cast<W>(W{0} - (z & 1));
}

/// High half of a product.
[[gnu::always_inline]] constexpr std::uint32_t multiply_high(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(a) * b) >> 32);
}
[[gnu::always_inline]] constexpr std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t al = a & 0xffffffffu, ah = a >> 32, bl = b & 0xffffffffu, bh = b >> 32;
  const std::uint64_t mid = ah * bl + ((al * bl) >> 32);
  const std::uint64_t low = al * bh + (mid & 0xffffffffu);
  return ah * bh + (mid >> 32) + (low >> 32);
}

/// Bit pattern of a float to a two's complement integer of the same order, and back (the map is its own inverse).
template <class W>
[[gnu::always_inline]] constexpr W ordered_key(W bits) {
  using S = std::make_signed_t<W>;
  const W negative = static_cast<W>(static_cast<S>(bits) >> (8 * sizeof(W) - 1));
  return bits ^ (negative & static_cast<W>(~(W{1} << (8 * sizeof(W) - 1))));
}

/// binary16 bits to binary32; exact.
[[gnu::always_inline]] constexpr float half_to_float(std::uint32_t h) {
  const std::uint32_t sign = (h & 0x8000u) << 16;
  const std::uint32_t rest = h & 0x7fffu;
  // Exponent and fraction moved into place and rescaled by 2^112 in one exact product (covers subnormals);
  // Inf and NaN get the exponent that the product cannot give.
  const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112f;
  const std::uint32_t special = rest >= 0x7c00u ? 0x7f800000u : 0u;
  return std::bit_cast<float>(sign | special | std::bit_cast<std::uint32_t>(scaled));
}

/// binary32 to binary16 bits, rounded to nearest even; overflow gives infinity, NaN a quiet NaN.
[[gnu::always_inline]] constexpr std::uint32_t float_to_half(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Normal range: rebias and round the 13 dropped bits; the carry may run into the exponent, as it should.
  const std::uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  // Subnormal range: adding 0.5 puts the rounding at the right bit; the sum's low bits are the answer.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude < 0x38800000u ? magnitude : 0u) + 0.5f) - 0x3f000000u;
  const std::uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
  const std::uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return sign | (magnitude >= 0x477ff000u ? large : finite);
}

/// bfloat16 bits to binary32; exact. And back, rounded to nearest even.
[[gnu::always_inline]] constexpr float bfloat_to_float(std::uint32_t b) { return std::bit_cast<float>(b << 16); }
[[gnu::always_inline]] constexpr std::uint32_t float_to_bfloat(float f) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(f);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return nan ? ((bits >> 16) | 0x40u) : rounded;
}

}  // namespace quern::kernels
