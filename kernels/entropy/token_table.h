// Decoding a residual from a rANS source: the token of a slot by a table, then the bits that have no model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/entropy/rans.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/entropy/token_distribution.h"

namespace quern::kernels {

/// Finds the token of a slot: where to begin looking, then upwards. Vectors read four bytes at any entry of either
/// array; they stay inside the table.
struct TokenTable {
  static constexpr unsigned kBucketShift = 7;
  std::array<std::uint8_t, (kFrequencySum >> kBucketShift)> buckets;
  TokenStarts starts;
  std::array<std::uint8_t, 14> unused;  ///< makes the size a power of two

  void fill(const TokenDistribution& model) {
    fill_token_starts(model, starts);
    unsigned t = 0;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      while (starts[t + 1u] <= b << kBucketShift) ++t;
      buckets[b] = static_cast<std::uint8_t>(t);
    }
  }
};
inline constexpr unsigned kTokenTableShift = 9;
static_assert(sizeof(TokenTable) == 1u << kTokenTableShift);

/// Decodes token 0, of that frequency, if it comes next. Where most residuals are 0 the branch is foretold, and what
/// comes next waits for no table.
[[gnu::always_inline]] inline bool decode_zero(RansSource& source, std::uint32_t frequency) {
  const std::uint32_t slot = source.state & (kFrequencySum - 1);
  if (slot >= frequency) return false;
  source.state = frequency * (source.state >> kFrequencySumBits) + slot;
  source.refill();
  return true;
}

[[gnu::always_inline]] inline std::int64_t decode_residual(RansSource& source, const TokenTable& table) {
  if (decode_zero(source, table.starts[1])) return 0;
  const std::uint32_t slot = source.state & (kFrequencySum - 1);
  unsigned token = table.buckets[slot >> TokenTable::kBucketShift];
  while (slot >= table.starts[token + 1u]) ++token;
  const std::uint32_t start = table.starts[token];
  source.state = (table.starts[token + 1u] - start) * (source.state >> kFrequencySumBits) + (slot - start);
  source.refill();
  const unsigned count = token_open_bits(token) + 1;
  std::uint32_t plain = source.take_plain(count < kRansPlainBits ? count : kRansPlainBits);
  if (count > kRansPlainBits) [[unlikely]]
    plain |= source.take_plain(count - kRansPlainBits) << kRansPlainBits;
  const std::int64_t magnitude = token_base(token) + (plain >> 1);
  return (plain & 1) != 0 ? -magnitude : magnitude;
}

}  // namespace quern::kernels
