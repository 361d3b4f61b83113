// Residuals as symbols of rANS: putting one into a state, and taking one from a source through a table of its level.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/core/rans.h"
#include "kernels/core/residual_model.h"
#include "kernels/core/residual_tokens.h"

namespace quern::codec::stencil {

/// Puts a residual with its sign; writes at most three words.
inline void put_residual(std::uint32_t& state, std::int32_t code, const kernels::RansEncodeEntry* table,
                         std::uint16_t*& at) {
  if (code == 0) return kernels::rans_encode<kernels::kFrequencySumBits>(state, table[0], at);
  const auto magnitude = static_cast<std::uint32_t>(code < 0 ? -code : code);
  const unsigned token = kernels::token_of(magnitude);
  const std::uint32_t plain = (magnitude - kernels::token_base(token)) << 1 | static_cast<std::uint32_t>(code < 0);
  const unsigned count = kernels::token_open_bits(token) + 1;
  if (count > kernels::kRansPlainBits)
    kernels::rans_encode_plain(state, plain >> kernels::kRansPlainBits, count - kernels::kRansPlainBits, at);
  const unsigned low = std::min(count, kernels::kRansPlainBits);
  kernels::rans_encode_plain(state, plain & ((1u << low) - 1), low, at);
  kernels::rans_encode<kernels::kFrequencySumBits>(state, table[token], at);
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
