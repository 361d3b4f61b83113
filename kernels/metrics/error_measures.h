// What is collected of an array and its reconstruction, and the formulas on it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/metrics/real.h"

namespace quern::verifier {

/// Over the valid elements, but for `specials_lost`. Counts and extremes: whatever the order of merging, the result is
/// the same, but for the sign of a zero in min and max.
struct ErrorExtremes {
  std::uint64_t valid = 0;
  std::uint64_t specials_lost = 0;
  double min = kInfinity;
  double max = -kInfinity;
  double max_error = 0.0;             ///< infinity where an error is not a number
  std::uint64_t max_error_index = 0;  ///< the lowest, if there are several
  double max_pointwise_rel = 0.0;     ///< max |x - x'| / |x| over x != 0
  std::uint64_t max_ulp = 0;

  constexpr void merge(const ErrorExtremes& other) {
    valid += other.valid;
    specials_lost += other.specials_lost;
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    add_error(other.max_error, other.max_error_index);
    max_pointwise_rel = std::max(max_pointwise_rel, other.max_pointwise_rel);
    max_ulp = std::max(max_ulp, other.max_ulp);
  }

  constexpr void add_error(double error, std::uint64_t index) {
    if (error > max_error || (error == max_error && index < max_error_index)) {
      max_error = error;
      max_error_index = index;
    }
  }
};

/// Squares of errors outside of this leave the range of binary64, or lose bits at its lower end.
constexpr bool needs_scaling(double max_error) {
  return max_error != 0 && is_finite(max_error) && (max_error > 0x1p400 || max_error < 0x1p-400);
}

/// The power of two 2^-k that brings `max_error` near 1.
constexpr int scale_exponent(double max_error) { return std::max(split(max_error).exponent, -1022); }

struct ErrorMeasures {
  double mse = 0.0;
  double psnr_db = 0.0;  ///< 20 log10(range) - 10 log10(MSE)
  double nrmse = 0.0;    ///< RMSE / range
  bool has_psnr = false;
  bool has_nrmse = false;
};

constexpr Scaled range_of(double min, double max) {
  const double difference = max - min;
  if (is_finite(difference)) return split(difference);
  const Scaled half = split(max / 2 - min / 2);
  return {half.factor, half.exponent + 1};
}

/// `squared_error` is the sum of the squares of errors times 2^-exponent. A template because logarithms are not
/// constexpr.
template <class Real = double>
constexpr ErrorMeasures error_measures(const ErrorExtremes& of, Real squared_error, int exponent) {
  ErrorMeasures measures;
  if (of.valid == 0) return measures;
  const auto log10 = [](const Scaled& number) {
    return std::log10(number.factor) + number.exponent * (std::numbers::ln2 / std::numbers::ln10);
  };
  const Real scaled_mse = squared_error / static_cast<Real>(of.valid);
  measures.mse = scale(scaled_mse, 2 * exponent);
  const Scaled rmse{std::sqrt(scaled_mse), exponent};
  const Scaled range = range_of(of.min, of.max);
  if (of.max_error != 0) {
    measures.has_psnr = true;
    measures.psnr_db = 20 * (log10(range) - log10(rmse));
  }
  if (range.factor != 0) {
    measures.has_nrmse = true;
    measures.nrmse = scale(rmse.factor / range.factor, rmse.exponent - range.exponent);
  }
  return measures;
}

}  // namespace quern::verifier
