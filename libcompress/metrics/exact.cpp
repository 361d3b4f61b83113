// Exact comparisons from error-free transformations: a rounded result and the rounding error beside it.
#include "libcompress/metrics/exact.h"

#include <cmath>
#include <limits>
#include <utility>

namespace quern::metrics {
namespace {

/// high + low, high being the sum rounded to nearest.
struct Exact {
  double high = 0.0;
  double low = 0.0;
};

/// |x - y|. Fast2Sum (Dekker 1971) on operands sorted by magnitude: exact, and free of overflow unless x - y overflows.
Exact exact_distance(double x, double y) {
  double big = x;
  double small = -y;
  if (std::fabs(big) < std::fabs(small)) std::swap(big, small);
  const double sum = big + small;
  if (std::isinf(sum)) return {std::numeric_limits<double>::infinity(), 0.0};
  const double rest = small - (sum - big);
  return sum < 0 ? Exact{-sum, -rest} : Exact{sum, rest};
}

}  // namespace

bool within_absolute(double x, double y, double bound) {
  const Exact distance = exact_distance(x, y);
  // Rounding is monotone and the bound is a binary64 number: only a tie leaves the question open.
  if (distance.high != bound) return distance.high < bound;
  return distance.low <= 0;
}

bool within_relative(double x, double y, double ratio) {
  const Exact distance = exact_distance(x, y);
  if (distance.high == 0) return true;
  if (x == 0 || ratio == 0 || std::isinf(distance.high)) return false;
  // ratio * |x| = (product.high + product.low) * 2^exponent, with both factors in [1/2, 1): nothing under- or
  // overflows.
  int exponent_x = 0;
  int exponent_ratio = 0;
  const double factor_x = std::frexp(std::fabs(x), &exponent_x);
  const double factor_ratio = std::frexp(ratio, &exponent_ratio);
  Exact product;
  product.high = factor_x * factor_ratio;
  product.low = std::fma(factor_x, factor_ratio, -product.high);
  const int exponent = exponent_x + exponent_ratio;

  int exponent_distance = 0;
  const double factor_distance = std::frexp(distance.high, &exponent_distance);
  const int shift = exponent_distance - exponent;
  if (shift < -2) return true;  // the distance is at most 1/8, the product at least 1/4
  if (shift > 1) return false;  // the distance is at least 2, the product below 1
  const double scaled = std::ldexp(factor_distance, shift);
  // Rounding is monotone, so the rounded numbers decide unless they are equal.
  if (scaled != product.high) return scaled < product.high;
  // The product's error is 0 or at least 2^-106, so underflow of the scaled error changes no comparison but that with
  // 0.
  if (product.low == 0) return distance.low <= 0;
  return std::ldexp(distance.low, -exponent) <= product.low;
}

std::uint64_t integer_limit(double bound) {
  if (bound >= 0x1p64) return std::numeric_limits<std::uint64_t>::max();
  return static_cast<std::uint64_t>(bound);
}

}  // namespace quern::metrics
