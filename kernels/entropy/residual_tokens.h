// Tokens of residuals: magnitudes below 16 stand for themselves, larger ones for their leading bit and the two bits
// below it; the bits below those, and the sign, are coded without a model.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/bits.h"

namespace quern::kernels {

inline constexpr std::uint32_t kPlainMagnitudes = 16;
inline constexpr unsigned kMaxMagnitudeBits = 30;
inline constexpr std::uint32_t kMaxMagnitude = (1u << kMaxMagnitudeBits) - 1;
/// Tokens 0..15, then four for each position of the leading bit from 4 to 29.
inline constexpr unsigned kResidualTokens = kPlainMagnitudes + 4 * (kMaxMagnitudeBits - 4);

[[gnu::always_inline]] constexpr std::uint32_t magnitude_of(std::int32_t code) {
  return code < 0 ? 0u - static_cast<std::uint32_t>(code) : static_cast<std::uint32_t>(code);
}

[[gnu::always_inline]] constexpr unsigned token_of(std::uint32_t magnitude) {
  // Both cases are computed and one is masked out: which it is cannot be foretold.
  const auto leading = bit_length(magnitude | kPlainMagnitudes) - 1;
  const unsigned large = 4 * (leading - 1) + (magnitude >> (leading - 2));
  const unsigned plain = 0u - static_cast<unsigned>(magnitude < kPlainMagnitudes);
  return (magnitude & plain) | (large & ~plain);
}

/// Bits of the magnitude that its token leaves open.
[[gnu::always_inline]] constexpr unsigned token_open_bits(unsigned token) {
  return token < kPlainMagnitudes ? 0 : ((token - kPlainMagnitudes) >> 2) + 2;
}

/// Smallest magnitude of a token.
[[gnu::always_inline]] constexpr std::uint32_t token_base(unsigned token) {
  if (token < kPlainMagnitudes) return token;
  const unsigned index = token - kPlainMagnitudes;
  return (4 + (index & 3)) << ((index >> 2) + 2);
}

/// A symbol is a context bin and a token, together the index of an entry in one table: bin * kTokenStride + token.
inline constexpr std::uint32_t kTokenStride = 128;
inline constexpr std::uint16_t kNoSymbol = 0xFFFF;  ///< of an element that has no residual, whatever its code

static_assert(kResidualTokens <= kTokenStride);
static_assert(token_base(token_of(16)) == 16 && token_open_bits(token_of(16)) == 2);
static_assert(token_of(kMaxMagnitude) == kResidualTokens - 1);

}  // namespace quern::kernels
