// Fitting the distribution of each context level by its cost in bits.
#include "codecs/stencil/model/residual_fit.h"

#include <algorithm>

#include "kernels/entropy/residual_model.h"

namespace quern::codec::stencil {
namespace {

using kernels::ResidualModel;
using Counts = std::array<std::uint32_t, kernels::kResidualTokens>;

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

/// What symbols cost under a model, or any number that is not below `most` if it is not. Token frequencies are those of
/// fill_token_starts, found while they are wanted.
std::uint64_t model_cost(const Counts& counts, const ResidualModel& model, std::uint64_t most) {
  __extension__ using Wide = unsigned __int128;
  std::uint64_t cost = counts[0] * symbol_cost(model.tokens == 1 ? kernels::kFrequencySum : model.zero);
  if (model.tokens == 1) return cost;
  const std::uint32_t shared = kernels::kFrequencySum - model.zero - (model.tokens - 1u);
  const int offset = kernels::tail_offset(model.scale);
  const std::uint32_t whole = kernels::tail_at(model.shape, kTokenLogs[1] - offset);
  // shared * whole < 2^39, whole <= 2^24: the excess of the product below stays below 1 / whole, so the quotient is
  // exact.
  const std::uint64_t reciprocal = whole == 0 ? 0 : (std::uint64_t{1} << 63) / whole + 1;
  std::uint32_t passed = 0;  // of `shared`, by the tokens before
  for (unsigned t = 1; t < model.tokens && cost < most; ++t) {
    std::uint32_t next = shared;
    if (t + 1u < model.tokens && whole != 0) {
      const std::uint32_t above = kernels::tail_at(model.shape, kTokenLogs[t + 1] - offset);
      next = static_cast<std::uint32_t>((Wide{std::uint64_t{shared} * (whole - above)} * 2 * reciprocal) >> 64);
    }
    if (counts[t] != 0) cost += counts[t] * symbol_cost(1 + next - passed);
    passed = next;
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
  for (model.shape = 0; model.shape < kernels::kTailExponents.size(); ++model.shape) {
    std::uint64_t shape_least = UINT64_MAX;
    int found = start;
    const auto consider = [&](int scale, bool ties) {
      model.scale = static_cast<std::uint8_t>(std::clamp(scale, 0, static_cast<int>(kernels::kMaxScale)));
      const std::uint64_t limit = shape_least + (ties ? 1 : 0);
      const std::uint64_t cost = model_cost(counts, model, limit);
      if (cost >= limit) return;
      shape_least = cost;
      found = model.scale;
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
    best = model;
    best.scale = static_cast<std::uint8_t>(found);
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
    cost += model_cost(counts[l], model.levels[l], UINT64_MAX);
    for (unsigned t = 1; t < counts[l].size(); ++t)
      cost += std::uint64_t{counts[l][t]} * (kernels::token_open_bits(t) + 1) << 12;
  }
  return cost;
}

}  // namespace quern::codec::stencil
