// Fitting the distribution of each context bin by its cost in bits.
#include "coding/distribution_fit.h"

#include <algorithm>

#include "kernels/common/log2_fixed.h"

namespace quern::coding {
namespace {

using kernels::kContextBins;
using kernels::TokenDistribution;

/// log2(2m - 1) for the smallest magnitude m of each token but 0, as tail_above takes it.
constexpr auto kTokenLogs = [] {
  std::array<int, kernels::kResidualTokens> logs{};
  for (unsigned t = 1; t < logs.size(); ++t)
    logs[t] = static_cast<int>(kernels::log2_fixed(2 * kernels::token_base(t) - 1));
  return logs;
}();

constexpr std::uint64_t symbol_cost(std::uint32_t frequency) {
  return (kernels::kFrequencySumBits << 12) - kernels::log2_fixed(frequency);
}

/// What symbols cost under a distribution, or any number that is not below `most` if it is not. Token frequencies are
/// those of fill_token_starts, found while they are wanted.
std::uint64_t distribution_cost(const TokenCounts& counts, const TokenDistribution& given, std::uint64_t most) {
  __extension__ using Wide = unsigned __int128;
  std::uint64_t cost = counts[0] * symbol_cost(given.tokens == 1 ? kernels::kFrequencySum : given.zero);
  if (given.tokens == 1) return cost;
  const std::uint32_t shared = kernels::kFrequencySum - given.zero - (given.tokens - 1u);
  const int offset = kernels::tail_offset(given.scale);
  const std::uint32_t whole = kernels::tail_at(given.shape, kTokenLogs[1] - offset);
  // shared * whole < 2^39, whole <= 2^24: the excess of the product below stays below 1 / whole, so the quotient is
  // exact.
  const std::uint64_t reciprocal = whole == 0 ? 0 : (std::uint64_t{1} << 63) / whole + 1;
  std::uint32_t passed = 0;  // of `shared`, by the tokens before
  for (unsigned t = 1; t < given.tokens && cost < most; ++t) {
    std::uint32_t next = shared;
    if (t + 1u < given.tokens && whole != 0) {
      const std::uint32_t above = kernels::tail_at(given.shape, kTokenLogs[t + 1] - offset);
      next = static_cast<std::uint32_t>((Wide{std::uint64_t{shared} * (whole - above)} * 2 * reciprocal) >> 64);
    }
    if (counts[t] != 0) cost += counts[t] * symbol_cost(1 + next - passed);
    passed = next;
  }
  return cost;
}

TokenDistribution fit_bin(const TokenCounts& counts) {
  TokenDistribution fitted;
  std::uint64_t total = 0;
  std::uint64_t magnitudes = 0;
  for (unsigned t = 0; t < counts.size(); ++t) {
    if (counts[t] == 0) continue;
    fitted.tokens = static_cast<std::uint8_t>(t + 1);
    total += counts[t];
    magnitudes += std::uint64_t{counts[t]} * (kernels::token_base(t) + (1u << kernels::token_open_bits(t)) / 2);
  }
  if (fitted.tokens < 2) return fitted;
  const std::uint64_t most = kernels::kFrequencySum - (fitted.tokens - 1u);
  fitted.zero = static_cast<std::uint16_t>(
      std::clamp<std::uint64_t>((counts[0] * std::uint64_t{kernels::kFrequencySum} + total / 2) / total, 1, most));
  if (fitted.tokens < 3) return fitted;
  // Scales are searched around that of the mean magnitude, in steps of an octave, then finer.
  const std::uint64_t mean = std::max<std::uint64_t>(magnitudes * 16 / total, 1);
  const int start = static_cast<int>(
      kernels::log2_fixed(static_cast<std::uint32_t>(std::min<std::uint64_t>(mean, UINT32_MAX))) / 512);
  std::uint64_t least = UINT64_MAX;
  TokenDistribution best = fitted;
  for (fitted.shape = 0; fitted.shape < kernels::kTailExponents.size(); ++fitted.shape) {
    std::uint64_t shape_least = UINT64_MAX;
    int found = start;
    const auto consider = [&](int scale, bool ties) {
      fitted.scale = static_cast<std::uint8_t>(std::clamp(scale, 0, static_cast<int>(kernels::kMaxScale)));
      const std::uint64_t limit = shape_least + (ties ? 1 : 0);
      const std::uint64_t cost = distribution_cost(counts, fitted, limit);
      if (cost >= limit) return;
      shape_least = cost;
      found = fitted.scale;
    };
    // Octaves from the start outwards, where costs soon pass the least; of those that cost the same the lowest.
    consider(start, false);
    for (const int distance : {8, 16, 24, 32}) {
      consider(start - distance, true);
      consider(start + distance, false);
    }
    for (const int step : {4, 2, 1}) {
      const int center = found;
      consider(center - step, false);
      consider(center + step, false);
    }
    if (shape_least >= least) continue;
    least = shape_least;
    best = fitted;
    best.scale = static_cast<std::uint8_t>(found);
  }
  return best;
}

}  // namespace

std::uint64_t fit_distributions(BinCounts& counts, Distributions& distributions) {
  std::array<std::uint64_t, kContextBins> totals{};
  std::size_t fullest = 0;
  for (std::size_t b = 0; b < kContextBins; ++b) {
    for (const std::uint32_t n : counts[b]) totals[b] += n;
    if (totals[b] > totals[fullest]) fullest = b;
  }
  for (std::size_t b = 0; b < kContextBins; ++b)
    distributions[b].tokens = totals[b] >= kFewSymbols || (b == fullest && totals[b] > 0) ? 1 : 0;
  const auto serving = serving_bins(distributions);
  for (std::size_t b = 0; b < kContextBins; ++b) {
    if (distributions[b].tokens != 0 || totals[b] == 0) continue;
    for (std::size_t t = 0; t < counts[b].size(); ++t) counts[serving[b]][t] += counts[b][t];
  }
  std::uint64_t cost = 0;
  for (std::size_t b = 0; b < kContextBins; ++b) {
    if (distributions[b].tokens == 0) continue;
    distributions[b] = fit_bin(counts[b]);
    cost += distribution_cost(counts[b], distributions[b], UINT64_MAX);
    for (unsigned t = 1; t < counts[b].size(); ++t)
      cost += std::uint64_t{counts[b][t]} * (kernels::token_open_bits(t) + 1) << 12;
  }
  return cost;
}

std::uint64_t estimate_distributions_cost(BinCounts& counts, Distributions& distributions) {
  constexpr std::uint64_t kFewToEstimate = UINT64_C(1) << 13;
  std::uint64_t all = 0;
  for (const TokenCounts& bin : counts)
    for (const std::uint32_t n : bin) all += n;
  if (all <= kFewToEstimate) return fit_distributions(counts, distributions);
  std::uint64_t cost = 0;
  for (std::size_t b = 0; b < kContextBins; ++b) {
    std::uint64_t total = 0;
    std::uint8_t tokens = 0;
    for (std::size_t t = 0; t < counts[b].size(); ++t) {
      if (counts[b][t] == 0) continue;
      total += counts[b][t];
      tokens = static_cast<std::uint8_t>(t + 1);
    }
    distributions[b].tokens = total >= kFewSymbols ? tokens : 0;
    cost += token_cost(counts[b]);
  }
  return cost;
}

}  // namespace quern::coding
