// Residuals as symbols of rANS: putting one into a state, and taking one from a source through a table of its level.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/core/rans.h"
#include "kernels/core/residual_model.h"
#include "kernels/core/residual_tokens.h"
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

/// Finds the token of a slot: where to begin looking, then upwards.
struct TokenTable {
  static constexpr unsigned kBucketShift = 7;
  kernels::TokenStarts starts;
  std::array<std::uint8_t, (kernels::kFrequencySum >> kBucketShift)> buckets;

  void fill(const kernels::ResidualModel& model) {
    kernels::fill_token_starts(model, starts);
    unsigned t = 0;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      while (starts[t + 1u] <= b << kBucketShift) ++t;
      buckets[b] = static_cast<std::uint8_t>(t);
    }
  }
};

[[gnu::always_inline]] inline std::int64_t take_residual(kernels::RansSource& source, const TokenTable& table) {
  const std::uint32_t slot = source.state & (kernels::kFrequencySum - 1);
  unsigned token = table.buckets[slot >> TokenTable::kBucketShift];
  while (slot >= table.starts[token + 1u]) ++token;
  const std::uint32_t start = table.starts[token];
  source.state = (table.starts[token + 1u] - start) * (source.state >> kernels::kFrequencySumBits) + (slot - start);
  source.refill();
  if (token == 0) return 0;
  const unsigned count = kernels::token_open_bits(token) + 1;
  std::uint32_t plain = source.take_plain(std::min(count, kernels::kRansPlainBits));
  if (count > kernels::kRansPlainBits) [[unlikely]]
    plain |= source.take_plain(count - kernels::kRansPlainBits) << kernels::kRansPlainBits;
  const std::int64_t magnitude = kernels::token_base(token) + (plain >> 1);
  return (plain & 1) != 0 ? -magnitude : magnitude;
}

}  // namespace quern::codec::stencil
