// Residuals as symbols of rANS: putting one into a state, and taking one from a source through a table of its level.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/core/rans.h"
#include "kernels/core/residual_model.h"
#include "kernels/core/residual_tokens.h"
#include "kernels/core/token_table.h"
#include "kernels/cpu/stencil.h"

namespace quern::codec::stencil {

/// A symbol is a context level and a token, together the place of an entry in one table.
inline constexpr std::size_t kTokenPlaces = kernels::kTokenPlaces;
inline constexpr std::size_t kResidualWords = 3;  // that put_symbol writes at most

/// What of a residual is coded without a model, by its token: the magnitude above `base` and the sign, in `count` bits.
struct PlainPart {
  std::uint32_t base = 0;
  std::uint32_t count = 0;
};
inline constexpr auto kPlainParts = [] {
  std::array<PlainPart, kernels::kResidualTokens> parts{};
  for (unsigned t = 0; t < parts.size(); ++t)
    parts[t] = {kernels::token_base(t), kernels::token_open_bits(t) + (t != 0 ? 1u : 0u)};
  return parts;
}();

/// Puts a residual with its sign, given its token and that token's entry.
[[gnu::always_inline]] inline void put_symbol(std::uint32_t& state, std::int32_t code, unsigned token,
                                              const kernels::RansEncodeEntry& entry, std::uint16_t*& at) {
  // Most residuals are 0 where speed counts most.
  if (token == 0) return kernels::rans_encode<kernels::kFrequencySumBits>(state, entry, at);
  const auto magnitude = static_cast<std::uint32_t>(code < 0 ? -code : code);
  const std::uint32_t plain = (magnitude - kPlainParts[token].base) << 1 | static_cast<std::uint32_t>(code < 0);
  unsigned count = kPlainParts[token].count;
  if (count > kernels::kRansPlainBits) [[unlikely]] {
    kernels::rans_encode_plain(state, plain >> kernels::kRansPlainBits, count - kernels::kRansPlainBits, at);
    count = kernels::kRansPlainBits;
  }
  kernels::rans_encode_plain(state, plain & ((1u << count) - 1), count, at);
  kernels::rans_encode<kernels::kFrequencySumBits>(state, entry, at);
}

using kernels::take_residual;
using kernels::take_zero;
using kernels::TokenTable;

}  // namespace quern::codec::stencil
