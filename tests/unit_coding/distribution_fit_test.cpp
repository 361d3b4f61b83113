// Distributions fitted to counts: costs are those of the frequencies that are stored, and the choice is that of a plain
// search.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>

#include "coding/distribution_fit.h"
#include "kernels/entropy/token_distribution.h"
#include "tests/support/instrumented.h"

namespace quern::coding {
namespace {

/// What symbols cost under a distribution, from the frequencies that are stored.
std::uint64_t slow_cost(const std::array<std::uint32_t, kernels::kResidualTokens>& counts,
                        const kernels::TokenDistribution& model) {
  kernels::TokenStarts starts;
  kernels::fill_token_starts(model, starts);
  std::uint64_t cost = 0;
  for (unsigned t = 0; t < model.tokens; ++t) {
    const std::uint32_t frequency = std::uint32_t{starts[t + 1u]} - starts[t];
    cost += std::uint64_t{counts[t]} * ((kernels::kFrequencySumBits << 12) - kernels::log2_fixed(frequency));
  }
  return cost;
}

/// The distribution that costs least of those that are looked at, in their order, as the format's encoder always chose.
kernels::TokenDistribution slow_fit(const std::array<std::uint32_t, kernels::kResidualTokens>& counts,
                                    kernels::TokenDistribution model) {
  std::uint64_t total = 0;
  std::uint64_t magnitudes = 0;
  for (unsigned t = 0; t < counts.size(); ++t) {
    total += counts[t];
    magnitudes += std::uint64_t{counts[t]} * (kernels::token_base(t) + (1u << kernels::token_open_bits(t)) / 2);
  }
  const std::uint64_t mean = std::clamp<std::uint64_t>(magnitudes * 16 / total, 1, UINT32_MAX);
  const int start = static_cast<int>(kernels::log2_fixed(static_cast<std::uint32_t>(mean)) / 512);
  std::uint64_t least = UINT64_MAX;
  kernels::TokenDistribution best = model;
  for (std::uint8_t shape = 0; shape < kernels::kTailExponents.size(); ++shape) {
    model.shape = shape;
    int center = start;
    std::uint64_t shape_least = UINT64_MAX;
    for (const int step : {8, 4, 2, 1}) {
      int better = center;
      for (int i = step == 8 ? -4 : -1; i <= (step == 8 ? 4 : 1); ++i) {
        const int scale = std::clamp(center + i * step, 0, static_cast<int>(kernels::kMaxScale));
        model.scale = static_cast<std::uint8_t>(scale);
        const std::uint64_t cost = slow_cost(counts, model);
        if (cost < shape_least) {
          shape_least = cost;
          better = scale;
        }
        if (cost < least) {
          least = cost;
          best = model;
        }
      }
      center = better;
    }
  }
  return best;
}

TEST(Coding_DistributionFit, DistributionsOfAnyCounts_LeastCostOfThoseLookedAt) {
  std::mt19937_64 random(93);
  for (int round = 0; round < (quern::testing::kInstrumented ? 10 : 60); ++round) {
    SCOPED_TRACE(round);
    BinCounts counts{};
    for (std::size_t l = 0; l < 12; ++l) {
      // Counts that fall off, that do not, and ones so few that many distributions cost the same.
      const unsigned tokens = 1 + static_cast<unsigned>(random() % kernels::kResidualTokens);
      for (unsigned t = 0; t < tokens; ++t) {
        const std::uint64_t most = round % 3 == 0   ? (std::uint64_t{1} << 24) / (1 + t * t * (l + 1))
                                   : round % 3 == 1 ? std::uint64_t{1} << (random() % 24)
                                                    : 3;
        if (random() % 3 != 0) counts[l][t] = static_cast<std::uint32_t>(random() % (most + 1));
      }
    }
    counts[3][0] += 50;
    Distributions distributions{};
    const std::uint64_t cost = fit_distributions(counts, distributions);
    std::uint64_t expected = 0;
    for (std::size_t l = 0; l < kernels::kContextBins; ++l) {
      const kernels::TokenDistribution& fitted = distributions[l];
      if (fitted.tokens == 0) continue;
      expected += slow_cost(counts[l], fitted);
      for (unsigned t = 1; t < counts[l].size(); ++t)
        expected += std::uint64_t{counts[l][t]} * (kernels::token_open_bits(t) + 1) << 12;
      if (fitted.tokens < 3) continue;
      const kernels::TokenDistribution slow = slow_fit(counts[l], fitted);
      EXPECT_EQ(fitted.shape, slow.shape) << "bin " << l;
      EXPECT_EQ(fitted.scale, slow.scale) << "bin " << l;
    }
    ASSERT_EQ(cost, expected);
  }
}

}  // namespace
}  // namespace quern::coding
