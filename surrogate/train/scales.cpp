// Sums in the order of the rows.
#include "surrogate/train/scales.h"

#include <algorithm>
#include <cmath>

namespace quern::surrogate {

Scales scales_of(const std::vector<const Row*>& rows, const std::function<bool(std::size_t)>& is_used) {
  const std::size_t inputs = rows.front()->inputs.size();
  Scales out{std::vector<float>(inputs), std::vector<float>(inputs)};
  for (std::size_t i = 0; i < inputs; ++i) {
    double sum = 0;
    double squares = 0;
    for (const Row* row : rows) sum += row->inputs[i];
    const double mean = sum / static_cast<double>(rows.size());
    for (const Row* row : rows) squares += (row->inputs[i] - mean) * (row->inputs[i] - mean);
    const double deviation = std::sqrt(squares / static_cast<double>(rows.size()));
    out.mean[i] = static_cast<float>(mean);
    out.scale[i] = is_used(i) && deviation > 1e-4 ? static_cast<float>(1 / deviation) : 0.0F;
  }
  return out;
}

torch::Tensor scaled_inputs(const std::vector<const Row*>& rows, const Scales& scales) {
  const auto n = static_cast<std::int64_t>(rows.size());
  const auto inputs = static_cast<std::int64_t>(scales.mean.size());
  torch::Tensor out = torch::zeros({n, inputs});
  auto x = out.accessor<float, 2>();
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < inputs; ++j) {
      const auto c = static_cast<std::size_t>(j);
      const auto value = static_cast<float>(rows[static_cast<std::size_t>(i)]->inputs[c]);
      x[i][j] = std::clamp((value - scales.mean[c]) * scales.scale[c], -4.0F, 4.0F);
    }
  return out;
}

void set_step(torch::optim::AdamW& optimizer, double first, int epoch, int epochs) {
  constexpr double kPi = 3.14159265358979323846;
  const double step = first * (0.02 + 0.49 * (1 + std::cos(kPi * epoch / epochs)));
  for (auto& group : optimizer.param_groups()) static_cast<torch::optim::AdamWOptions&>(group.options()).lr(step);
}

}  // namespace quern::surrogate
