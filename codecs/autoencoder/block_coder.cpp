// Predictors are compared by the bits that their codes and their numbers would take, in integers.
#include "codecs/autoencoder/block_coder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>

#include "kernels/common/log2_fixed.h"
#include "kernels/common/round_to_integer.h"
#include "kernels/entropy/residual_tokens.h"

namespace quern::codec::autoencoder {
namespace {

constexpr std::uint64_t kBit = 1u << 12;

/// Bits of codes of which all that is known are their number, the sum of their magnitudes and how many are not 0: those
/// of a geometric distribution of that mean, and signs.
std::uint64_t codes_cost(std::uint64_t count, std::uint64_t sum, std::uint64_t not_zero) {
  if (sum == 0) return 0;
  const std::uint64_t capped = std::min<std::uint64_t>(sum, UINT32_MAX / 2);
  const auto log = [](std::uint64_t n) { return std::uint64_t{kernels::log2_fixed(static_cast<std::uint32_t>(n))}; };
  const std::uint64_t both = log(count + capped);
  return count * (both - log(count)) + capped * (both - std::min(both, log(capped))) + not_zero * kBit;
}

std::int64_t rounded_shift(std::int64_t v, unsigned shift) { return (v + (std::int64_t{1} << (shift - 1))) >> shift; }

/// Codes of all predictions; false where one is too large.
bool code_residuals(const BlockTargets& targets, BlockChoice& choice, std::uint64_t& not_zero) {
  choice.sum = not_zero = 0;
  choice.codes.resize(targets.values.size());
  for (std::size_t i = 0; i < targets.values.size(); ++i) {
    choice.codes[i] = 0;
    if (!targets.special.empty() && targets.special[i] != 0) continue;
    const std::int64_t code = rounded_shift(targets.values[i] - choice.predicted[i], kFractionBits);
    if (std::llabs(code) > kernels::kMaxMagnitude) return false;
    choice.codes[i] = static_cast<std::int32_t>(code);
    choice.sum += static_cast<std::uint64_t>(std::llabs(code));
    not_zero += code != 0 ? 1 : 0;
  }
  return true;
}

/// The slope of least squares along each axis, in units of step / (4 extent).
Slopes fitted_slopes(const BlockTargets& targets, const Extents& whole) {
  Slopes slopes{};
  std::array<double, 3> products{}, squares{};
  const auto mean = static_cast<double>(targets.mean << kMeanShift);
  std::size_t i = 0;
  const Block& block = targets.block;
  for (std::uint64_t z = 0; z < block.extents[0]; ++z)
    for (std::uint64_t y = 0; y < block.extents[1]; ++y)
      for (std::uint64_t x = 0; x < block.extents[2]; ++x, ++i) {
        if (!targets.special.empty() && targets.special[i] != 0) continue;
        const Extents at{z, y, x};
        for (std::size_t a = 0; a < 3; ++a) {
          const auto distance = static_cast<double>(from_middle(at[a], whole[a]));
          products[a] += distance * (static_cast<double>(targets.values[i]) - mean);
          squares[a] += distance * distance;
        }
      }
  for (std::size_t a = 0; a < 3; ++a) {
    if (whole[a] == 1 || squares[a] == 0) continue;
    const double steps = products[a] / squares[a] / (1 << kFractionBits) * static_cast<double>(4 * whole[a]);
    slopes[a] = kernels::nearest_integer(std::clamp(steps, -0x1p28, 0x1p28));
  }
  return slopes;
}

}  // namespace

std::uint64_t number_cost(std::int64_t number) {
  if (number == 0) return kBit;
  return (kBit + kBit / 2) *
         (1 + static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(std::llabs(number)))));
}

void BlockCoder::keep_if_best() {
  if (trial_.cost < best_.cost) std::swap(trial_, best_);
}

void BlockCoder::finish(const BlockTargets& targets, const BlockHistory& history, BlockChoice& choice) {
  std::uint64_t not_zero = 0;
  choice.cost = UINT64_MAX;
  if (!code_residuals(targets, choice, not_zero)) return;
  choice.cost = codes_cost(targets.count, choice.sum, not_zero) + number_cost(targets.mean - history.mean);
  for (const std::int64_t slope : choice.slopes) choice.cost += slope != 0 ? number_cost(slope) : 0;
  for (const std::int32_t latent : choice.latents) choice.cost += number_cost(latent);
}

void BlockCoder::try_plane(const BlockTargets& targets, bool slopes, const BlockHistory& history) {
  trial_.method = slopes ? kPlane : kConstant;
  trial_.latents.clear();
  trial_.slopes = slopes ? fitted_slopes(targets, spec_.block) : Slopes{};
  trial_.predicted.resize(targets.values.size());
  predict_plane(targets.block, spec_.block, targets.mean, trial_.slopes, trial_.predicted.data());
  finish(targets, history, trial_);
  keep_if_best();
}

void BlockCoder::try_lorenzo(const BlockTargets& targets, WorkValues& values) {
  trial_.method = kLorenzo;
  trial_.latents.clear();
  trial_.slopes = {};
  trial_.codes.assign(targets.values.size(), 0);
  trial_.sum = 0;
  std::uint64_t not_zero = 0;
  bool possible = true;
  for_each_element(targets.block, [&](const Extents& at, std::size_t i) {
    const std::size_t here = values.index(at);
    if (!targets.special.empty() && targets.special[i] != 0) return values.set(here, values.repeated(here));
    const std::int64_t predicted = values.lorenzo(here);
    const std::int64_t code = rounded_shift(targets.values[i] - predicted, kFractionBits);
    possible = possible && std::llabs(code) <= kernels::kMaxMagnitude;
    trial_.codes[i] = static_cast<std::int32_t>(code);
    trial_.sum += static_cast<std::uint64_t>(std::llabs(code));
    not_zero += code != 0 ? 1 : 0;
    values.set(here, predicted + code * (1 << kFractionBits));
  });
  trial_.cost = possible ? codes_cost(targets.count, trial_.sum, not_zero) : UINT64_MAX;
  keep_if_best();
}

void BlockCoder::encode_latents(const BlockTargets& targets, std::size_t network, double inverse) {
  const PreparedModel& model = *spec_.model;
  const Block& block = targets.block;
  const auto limit = kernels::activation_limit(kernels::kMostActivationBits);
  const std::int64_t mean = targets.mean * (1 << kMeanShift);
  std::vector<std::int16_t>& in = memory_.in;
  in.resize(model.block_elems);
  std::size_t i = 0;
  // Places outside the chunk repeat the nearest one inside.
  for (std::uint64_t z = 0; z < spec_.block[0]; ++z)
    for (std::uint64_t y = 0; y < spec_.block[1]; ++y)
      for (std::uint64_t x = 0; x < spec_.block[2]; ++x, ++i) {
        const std::uint64_t row =
            std::min(z, block.extents[0] - 1) * block.extents[1] + std::min(y, block.extents[1] - 1);
        const auto at = static_cast<std::size_t>(row * block.extents[2] + std::min(x, block.extents[2] - 1));
        const bool special = !targets.special.empty() && targets.special[at] != 0;
        const double v = special ? 0 : static_cast<double>(targets.values[at] - mean) * inverse;
        in[i] = kernels::clamp_activation(kernels::nearest_integer(std::clamp(v, -65536.0, 65536.0)), limit);
      }
  const PreparedModel::Predictor& predictor = model.predictors[network];
  proposed_.resize(predictor.latents());
  predictor.encoder.run(*spec_.networks, in, memory_.encoder_room, proposed_);
}

void BlockCoder::predict_latents(const BlockTargets& targets, std::size_t network, const NetworkScale& scale,
                                 BlockChoice& choice) {
  const std::int32_t step = scale.latent_step[network];
  choice.method = kFirstNetwork + static_cast<unsigned>(network);
  choice.slopes = {};
  choice.latents.resize(proposed_.size());
  for (std::size_t i = 0; i < proposed_.size(); ++i) {
    const std::int32_t magnitude = (std::abs(std::int32_t{proposed_[i]}) + step / 2) / step;
    choice.latents[i] = proposed_[i] < 0 ? -magnitude : magnitude;
  }
  whole_.resize(spec_.model->block_elems);
  predict_block(*spec_.model, network, *spec_.networks, scale, choice.latents, memory_, whole_.data());
  choice.predicted.resize(targets.values.size());
  const std::int64_t mean = targets.mean * (1 << kMeanShift);
  std::size_t i = 0;
  for (std::uint64_t z = 0; z < targets.block.extents[0]; ++z)
    for (std::uint64_t y = 0; y < targets.block.extents[1]; ++y)
      for (std::uint64_t x = 0; x < targets.block.extents[2]; ++x)
        choice.predicted[i++] = mean + whole_[(z * spec_.block[1] + y) * spec_.block[2] + x];
}

namespace {

/// Units of values for a unit of a network's numbers, as a multiplier and a shift; false where that does not fit.
bool set_scale(double ratio, NetworkScale& scale) {
  if (!(ratio > 0x1p-30) || !(ratio < 0x1p29)) return false;
  int exponent = 0;
  const double fraction = std::frexp(ratio, &exponent);  // 0.5 to 1
  scale.multiplier = static_cast<std::uint32_t>(kernels::nearest_integer(fraction * 0x1p30));
  scale.shift = static_cast<unsigned>(30 - exponent);
  return scale.shift >= 1 && scale.shift <= kernels::kMostRescaleShift;
}

double ratio_of(const NetworkScale& scale) {
  return std::ldexp(static_cast<double>(scale.multiplier), -static_cast<int>(scale.shift));
}

}  // namespace

void BlockCoder::choose_steps(std::span<const BlockTargets> sample, double unit, NetworkScale& scale) {
  constexpr unsigned kSteps = 14;
  if (spec_.model == nullptr) return;
  if (!set_scale(spec_.scale / unit / std::ldexp(1.0, spec_.model->unit_bits), scale)) return;
  for (std::size_t p = 0; p < spec_.model->predictors.size(); ++p) {
    std::array<std::uint64_t, kSteps> costs{};
    for (const BlockTargets& targets : sample) {
      if (targets.count == 0) continue;
      // Blocks that a plane describes better do not count.
      best_.cost = UINT64_MAX;
      try_plane(targets, false, {targets.mean, 0, 0});
      try_plane(targets, true, {targets.mean, 0, 0});
      encode_latents(targets, p, 1 / ratio_of(scale));
      for (unsigned s = 0; s < kSteps; ++s) {
        scale.latent_step[p] = static_cast<std::uint16_t>(1u << s);
        predict_latents(targets, p, scale, trial_);
        finish(targets, {targets.mean, 0, 0}, trial_);
        costs[s] += std::min(trial_.cost, best_.cost);
      }
    }
    const auto least = std::min_element(costs.begin(), costs.end()) - costs.begin();
    scale.latent_step[p] = static_cast<std::uint16_t>(1u << least);
  }
}

void BlockCoder::try_networks(const BlockTargets& targets, const NetworkScale& scale, const BlockHistory& history) {
  if (targets.count == 0) return;
  for (std::size_t p = 0; p < models::kMostPredictors; ++p) {
    if (scale.latent_step[p] == 0) continue;
    encode_latents(targets, p, 1 / ratio_of(scale));
    predict_latents(targets, p, scale, trial_);
    finish(targets, history, trial_);
    keep_if_best();
  }
}

const BlockChoice& BlockCoder::choose(const BlockTargets& targets, const NetworkScale& scale,
                                      const BlockHistory& history, WorkValues& values) {
  best_.cost = UINT64_MAX;
  try_lorenzo(targets, values);
  try_plane(targets, false, history);
  try_plane(targets, true, history);
  try_networks(targets, scale, history);
  if (best_.method != kLorenzo)
    for_each_element(targets.block, [&](const Extents& at, std::size_t i) {
      const std::size_t here = values.index(at);
      const bool special = !targets.special.empty() && targets.special[i] != 0;
      values.set(here, special ? values.repeated(here)
                               : best_.predicted[i] + std::int64_t{best_.codes[i]} * (1 << kFractionBits));
    });
  return best_;
}

}  // namespace quern::codec::autoencoder
