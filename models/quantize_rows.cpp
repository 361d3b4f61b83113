// A scale for each row, one shift for the layer.
#include "models/quantize_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/network/rules.h"

namespace quern::models {
namespace {

constexpr double kMostWeight = 127;
constexpr double kMostSum = 0x1.fffp30;  // a little below 2^31: roundings of weights and bias stay below it, too
constexpr double kMostMultiplier = 0x1p30;

}  // namespace

bool quantize_rows(const RealRows& rows, kernels::NetworkLayer& layer) {
  const std::size_t count = rows.bias.size();
  const std::size_t columns = rows.weights.size() / count;
  const double most_input = kernels::activation_limit(rows.in_bits);
  std::vector<double> scales(count), ratios(count);
  double most_ratio = 0;
  for (std::size_t r = 0; r < count; ++r) {
    const auto row = rows.weights.subspan(r * columns, columns);
    double most = 0;
    double sum = 0;
    for (const double w : row) {
      most = std::max(most, std::fabs(w));
      sum += std::fabs(w);
    }
    if (!std::isfinite(sum) || !std::isfinite(rows.bias[r])) return false;
    // Rounding adds half a unit to each weight at most.
    const double room = kMostSum - most_input * static_cast<double>(columns) / 2;
    if (!(room > 0)) return false;
    const double by_sum = (sum * most_input + std::fabs(rows.bias[r]) * rows.in_unit) / room;
    scales[r] = std::max({most / kMostWeight, by_sum, 1e-30});
    ratios[r] = scales[r] * rows.out_unit / rows.in_unit;
    if (!(ratios[r] - ratios[r] == 0)) return false;
    most_ratio = std::max(most_ratio, ratios[r]);
  }
  int exponent = 0;
  std::frexp(most_ratio, &exponent);
  const int shift = std::clamp(30 - exponent, 1, static_cast<int>(kernels::kMostRescaleShift));
  layer.shift = static_cast<std::uint8_t>(shift);
  for (std::size_t r = 0; r < count; ++r) {
    const double multiplier = std::ldexp(ratios[r], shift);
    if (!(multiplier <= kMostMultiplier)) return false;
    layer.multipliers.push_back(static_cast<std::int32_t>(std::lrint(multiplier)));
    layer.bias.push_back(static_cast<std::int32_t>(std::lrint(rows.bias[r] * rows.in_unit / scales[r])));
    for (std::size_t c = 0; c < columns; ++c)
      layer.weights.push_back(static_cast<std::int8_t>(std::lrint(rows.weights[r * columns + c] / scales[r])));
  }
  return true;
}

}  // namespace quern::models
