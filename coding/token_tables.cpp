// Tables and entries of every context bin.
#include "coding/token_tables.h"

#include <algorithm>

namespace quern::coding {

using kernels::kContextBins;
using kernels::kTokenStride;

Status fill_token_tables(const Distributions& distributions, kernels::TokenTable* tables, ServingTables& serving) {
  const auto bins = serving_bins(distributions);
  for (std::size_t b = 0; b < kContextBins; ++b)
    if (distributions[b].tokens != 0) tables[b].fill(distributions[b]);
  for (std::size_t b = 0; b < kContextBins; ++b) {
    if (bins[b] == kContextBins) return Status(StatusCode::corrupt, "residuals: no context bin has a distribution");
    serving[b] = &tables[bins[b]];
  }
  return {};
}

void fill_token_entries(const Distributions& distributions, const kernels::ResidualEntries& entries) {
  const auto bins = serving_bins(distributions);
  for (std::size_t b = 0; b < kContextBins; ++b) {
    const kernels::TokenDistribution& bin = distributions[b];
    if (bin.tokens == 0) continue;
    kernels::TokenStarts starts;
    kernels::fill_token_starts(bin, starts);
    for (unsigned t = 0; t < bin.tokens; ++t)
      entries.set(b * kTokenStride + t, std::uint32_t{starts[t + 1u]} - starts[t], starts[t]);
  }
  for (std::size_t b = 0; b < kContextBins; ++b) {
    if (bins[b] == b || bins[b] >= kContextBins) continue;
    const std::size_t from = bins[b] * kTokenStride;
    const unsigned tokens = distributions[bins[b]].tokens;
    std::copy_n(entries.entries + from, tokens, entries.entries + b * kTokenStride);
    std::copy_n(entries.packed + from, tokens, entries.packed + b * kTokenStride);
  }
}

}  // namespace quern::coding
