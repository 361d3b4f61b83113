// What tokens cost before a distribution is fitted to them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "codecs/stencil/model/model.h"
#include "codecs/stencil/model/residual_fit.h"
#include "kernels/entropy/residual_model.h"
#include "kernels/entropy/residual_tokens.h"

namespace quern::codec::stencil {

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

/// About what fit_levels returns, without a search unless symbols are so few that entropies say too little: the entropy
/// of every level. model.levels tells which levels would be stored.
inline std::uint64_t estimate_levels_cost(LevelCounts& counts, ChunkModel& model) {
  constexpr std::uint64_t kFewToEstimate = UINT64_C(1) << 13;
  std::uint64_t all = 0;
  for (const TokenCounts& level : counts)
    for (const std::uint32_t n : level) all += n;
  if (all <= kFewToEstimate) return fit_levels(counts, model);
  std::uint64_t cost = 0;
  for (std::size_t l = 0; l < kLevels; ++l) {
    std::uint64_t total = 0;
    std::uint8_t tokens = 0;
    for (std::size_t t = 0; t < counts[l].size(); ++t) {
      if (counts[l][t] == 0) continue;
      total += counts[l][t];
      tokens = static_cast<std::uint8_t>(t + 1);
    }
    model.levels[l].tokens = total >= kFewSymbols ? tokens : 0;
    cost += token_cost(counts[l]);
  }
  return cost;
}

}  // namespace quern::codec::stencil
