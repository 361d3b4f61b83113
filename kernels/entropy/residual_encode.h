// Encoding a residual into a rANS state: the counterpart of decode_residual.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/entropy/rans.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/entropy/token_distribution.h"

namespace quern::kernels {

inline constexpr std::size_t kResidualWords = 3;  // that encode_residual writes at most

/// Encodes a residual with its sign, given its token and that token's entry.
[[gnu::always_inline]] inline void encode_residual(std::uint32_t& state, std::int32_t code, unsigned token,
                                                   const RansEncodeEntry& entry, std::uint16_t*& at) {
  // Most residuals are 0 where speed counts most.
  if (token == 0) return rans_encode<kFrequencySumBits>(state, entry, at);
  const auto magnitude = magnitude_of(code);
  const unsigned open = token_open_bits(token);
  const std::uint32_t plain = (magnitude & ((1u << open) - 1)) << 1 | static_cast<std::uint32_t>(code < 0);
  unsigned count = open + 1;
  if (count > kRansPlainBits) [[unlikely]] {
    rans_encode_plain(state, plain >> kRansPlainBits, count - kRansPlainBits, at);
    count = kRansPlainBits;
  }
  rans_encode_plain(state, plain & ((1u << count) - 1), count, at);
  rans_encode<kFrequencySumBits>(state, entry, at);
}

}  // namespace quern::kernels
