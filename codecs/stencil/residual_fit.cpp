// Fitting the distribution of each context level by its cost in bits.
#include "codecs/stencil/residual_fit.h"

#include <algorithm>

#include "kernels/core/residual_model.h"

namespace quern::codec::stencil {
namespace {

using kernels::ResidualModel;
using Counts = std::array<std::uint32_t, kernels::kResidualTokens>;

std::uint64_t model_cost(const Counts& counts, const ResidualModel& model) {
  kernels::TokenStarts starts;
  kernels::fill_token_starts(model, starts);
  std::uint64_t cost = 0;
  for (unsigned t = 0; t < model.tokens; ++t) {
    if (counts[t] == 0) continue;
    const std::uint32_t frequency = starts[t + 1u] - starts[t];
    cost += std::uint64_t{counts[t]} * ((kernels::kFrequencySumBits << 12) - kernels::log2_fixed(frequency));
  }
  return cost;
}

ResidualModel fit_level(const Counts& counts) {
  ResidualModel model;
  std::uint64_t total = 0;
  std::uint64_t magnitudes = 0;
  for (unsigned t = 0; t < counts.size(); ++t) {
    if (counts[t] == 0) continue;
    model.tokens = static_cast<std::uint8_t>(t + 1);
    total += counts[t];
    magnitudes += std::uint64_t{counts[t]} * (kernels::token_base(t) + (1u << kernels::token_open_bits(t)) / 2);
  }
  if (model.tokens < 2) return model;
  const std::uint64_t most = kernels::kFrequencySum - (model.tokens - 1u);
  model.zero = static_cast<std::uint16_t>(
      std::clamp<std::uint64_t>((counts[0] * std::uint64_t{kernels::kFrequencySum} + total / 2) / total, 1, most));
  if (model.tokens < 3) return model;
  // Scales are searched around that of the mean magnitude, in steps of an octave, then finer.
  const std::uint64_t mean = std::max<std::uint64_t>(magnitudes * 16 / total, 1);
  const int start = static_cast<int>(
      kernels::log2_fixed(static_cast<std::uint32_t>(std::min<std::uint64_t>(mean, UINT32_MAX))) / 512);
  std::uint64_t least = UINT64_MAX;
  ResidualModel best = model;
  for (std::uint8_t shape = 0; shape < kernels::kTailExponents.size(); ++shape) {
    model.shape = shape;
    int center = start;
    std::uint64_t shape_least = UINT64_MAX;
    for (const int step : {8, 4, 2, 1}) {
      int better = center;
      const int reach = step == 8 ? 4 : 1;
      for (int i = -reach; i <= reach; ++i) {
        const int scale = std::clamp(center + i * step, 0, static_cast<int>(kernels::kMaxScale));
        model.scale = static_cast<std::uint8_t>(scale);
        const std::uint64_t cost = model_cost(counts, model);
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

}  // namespace

std::uint64_t fit_levels(LevelCounts& counts, ChunkModel& model) {
  std::array<std::uint64_t, kLevels> totals{};
  std::size_t fullest = 0;
  for (std::size_t l = 0; l < kLevels; ++l) {
    for (const std::uint32_t n : counts[l]) totals[l] += n;
    if (totals[l] > totals[fullest]) fullest = l;
  }
  for (std::size_t l = 0; l < kLevels; ++l)
    model.levels[l].tokens = totals[l] >= kFewSymbols || (l == fullest && totals[l] > 0) ? 1 : 0;
  const auto map = level_map(model);
  for (std::size_t l = 0; l < kLevels; ++l) {
    if (model.levels[l].tokens != 0 || totals[l] == 0) continue;
    for (std::size_t t = 0; t < counts[l].size(); ++t) counts[map[l]][t] += counts[l][t];
  }
  std::uint64_t cost = 0;
  for (std::size_t l = 0; l < kLevels; ++l) {
    if (model.levels[l].tokens == 0) continue;
    model.levels[l] = fit_level(counts[l]);
    cost += model_cost(counts[l], model.levels[l]);
    for (unsigned t = 1; t < counts[l].size(); ++t)
      cost += std::uint64_t{counts[l][t]} * (kernels::token_open_bits(t) + 1) << 12;
  }
  return cost;
}

}  // namespace quern::codec::stencil
