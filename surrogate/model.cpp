// Forward pass of a network.
#include "surrogate/model.h"

#include <algorithm>

#include "surrogate/numbers.h"

namespace quern::surrogate {
namespace {

/// weights * in + bias, added to `out`.
void apply(const Layer& layer, const std::vector<double>& in, std::vector<double>& out) {
  out.resize(layer.rows);
  for (std::size_t r = 0; r < layer.rows; ++r) {
    const float* row = layer.weights.data() + r * layer.columns;
    // Four sums side by side, in one order everywhere.
    std::array<double, 4> sums{};
    std::size_t c = 0;
    for (; c + 4 <= layer.columns; c += 4)
      for (std::size_t k = 0; k < 4; ++k) sums[k] += static_cast<double>(row[c + k]) * in[c + k];
    for (; c < layer.columns; ++c) sums[0] += static_cast<double>(row[c]) * in[c];
    out[r] += ((sums[0] + sums[1]) + (sums[2] + sums[3])) + static_cast<double>(layer.bias[r]);
  }
}

void rectify(std::vector<double>& values) {
  for (double& v : values) v = std::max(v, v * 0.125);
}

/// The weights of the experts, which add up to 1.
std::vector<double> gate_of(const CodecModel& model, const std::vector<double>& scaled) {
  if (model.experts.size() == 1) return {1};
  std::vector<double> shares;
  apply(model.gate, scaled, shares);
  const double most = *std::max_element(shares.begin(), shares.end());
  double sum = 0;
  for (double& share : shares) {
    constexpr double kLog2E = 1.4426950408889634;
    share = exp2_of(kLog2E * (share - most));
    sum += share;
  }
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace

const CodecModel* Model::by_name(const std::string& codec, bool with_deep) const {
  if (with_deep && !deep) return nullptr;
  for (const CodecModel& model : with_deep ? deep->codecs : codecs)
    if (model.codec == codec) return &model;
  return nullptr;
}

Prediction predict(const CodecModel& model, std::span<const double> inputs) {
  constexpr double kFar = 4;  // beyond, more of it is no more
  Prediction out;
  std::vector<double> scaled(inputs.size());
  double squares = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double z = (inputs[i] - static_cast<double>(model.mean[i])) * static_cast<double>(model.scale[i]);
    squares += std::min(z * z, 1e6);
    scaled[i] = std::clamp(z, -kFar, kFar);
  }
  out.distance = sqrt_of(squares / static_cast<double>(std::max<std::size_t>(inputs.size(), 1))) /
                 static_cast<double>(model.usual_distance);
  std::vector<double> first, second, last;
  apply(model.hidden[0], scaled, first);
  rectify(first);
  apply(model.hidden[1], first, second);
  rectify(second);
  const std::vector<double> shares = gate_of(model, scaled);
  std::vector<double> mixed(3 * kTargets);
  for (std::size_t e = 0; e < model.experts.size(); ++e) {
    last.clear();
    apply(model.experts[e].last, second, last);
    apply(model.experts[e].direct, scaled, last);
    for (std::size_t i = 0; i < mixed.size(); ++i) mixed[i] += shares[e] * last[i];
  }
  for (std::size_t t = 0; t < kTargets; ++t) {
    const double middle = mixed[3 * t];
    const auto widening = static_cast<double>(model.widening[t]);
    const double below = std::max(std::max(mixed[3 * t + 1], -mixed[3 * t + 1]) + widening, 0.0);
    const double above = std::max(std::max(mixed[3 * t + 2], -mixed[3 * t + 2]) + widening, 0.0);
    out.targets[t] = {middle - below, middle, middle + above};
  }
  return out;
}

}  // namespace quern::surrogate
