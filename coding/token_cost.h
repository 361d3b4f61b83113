// What tokens cost before a distribution is fitted to them.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/common/log2_fixed.h"
#include "kernels/entropy/residual_tokens.h"

namespace quern::coding {

/// How often each token occurs.
using TokenCounts = std::array<std::uint32_t, kernels::kResidualTokens>;

/// Order-0 entropy of tokens with the bits they leave open, in units of 2^-12 bits.
inline std::uint64_t token_cost(const TokenCounts& counts) {
  std::uint64_t total = 0;
  for (const std::uint32_t n : counts) total += n;
  if (total == 0) return 0;
  const std::uint32_t log_total = kernels::log2_fixed(static_cast<std::uint32_t>(total));
  std::uint64_t cost = 0;
  for (unsigned t = 0; t < counts.size(); ++t) {
    if (counts[t] == 0) continue;
    const std::uint32_t open = kernels::token_open_bits(t) + (t > 0 ? 1 : 0);
    cost += std::uint64_t{counts[t]} * (log_total - kernels::log2_fixed(counts[t]) + (open << 12));
  }
  return cost;
}

}  // namespace quern::coding
