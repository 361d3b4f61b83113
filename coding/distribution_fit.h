// From counts of tokens in context bins to the distributions that are stored.
#pragma once

#include <array>
#include <cstdint>

#include "coding/distributions.h"
#include "coding/token_cost.h"

namespace quern::coding {

/// Bins of fewer symbols do not pay for their numbers.
inline constexpr std::uint32_t kFewSymbols = 40;

/// How often each token occurs, by context bin.
using BinCounts = std::array<TokenCounts, kernels::kContextBins>;

/// Sets all distributions; bins of few symbols are left to their neighbours, to whose counts theirs are added. Returns
/// the bits, in units of 2^-12, that all symbols cost with what their tokens leave open. Integer arithmetic, ties to
/// the lower index. Tries about 100 distributions for each bin present.
std::uint64_t fit_distributions(BinCounts& counts, Distributions& distributions);

/// About what fit_distributions returns, without a search unless symbols are so few that entropies say too little: the
/// entropy of every bin. `distributions` tells by its tokens which bins would be stored.
std::uint64_t estimate_distributions_cost(BinCounts& counts, Distributions& distributions);

}  // namespace quern::coding
