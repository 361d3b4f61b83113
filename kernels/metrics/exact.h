// Inequalities between binary64 numbers decided as if computed over the real numbers: no tolerance, no rounding. They
// are made of error-free transformations: a rounded result and the rounding error beside it.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/metrics/real.h"

namespace quern::verifier {

/// high + low, high being the sum rounded to nearest.
struct ExactSum {
  double high = 0.0;
  double low = 0.0;
};

/// |x - y| of finite numbers. Fast2Sum (Dekker 1971) on operands sorted by magnitude: exact, and free of overflow
/// unless x - y overflows, when it is infinite.
constexpr ExactSum exact_distance(double x, double y) {
  const bool swapped = magnitude(x) < magnitude(y);
  const double big = swapped ? -y : x;
  const double small = swapped ? x : -y;
  const double sum = big + small;
  if (!is_finite(sum)) return {kInfinity, 0.0};
  const double rest = small - (sum - big);
  return sum < 0 ? ExactSum{-sum, -rest} : ExactSum{sum, rest};
}

/// a * b - product, where `product` is a * b rounded to nearest and |a|, |b| lie between 1/2 and 1 (Dekker 1971 with
/// the halves of Veltkamp 1968): exact, and the same with and without a fused multiply-add in the machine.
constexpr double product_error(double a, double b, double product) {
  constexpr double kHalves = 0x1p27 + 1;
  const double wide_a = kHalves * a;
  const double wide_b = kHalves * b;
  const double high_a = wide_a - (wide_a - a);
  const double high_b = wide_b - (wide_b - b);
  const double low_a = a - high_a;
  const double low_b = b - high_b;
  return ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b;
}

/// |x - y| <= bound, for finite x, y and finite bound >= 0.
constexpr bool within_absolute(double x, double y, double bound) {
  const ExactSum distance = exact_distance(x, y);
  // Rounding is monotone and the bound is a binary64 number: only a tie leaves the question open.
  if (distance.high != bound) return distance.high < bound;
  return distance.low <= 0;
}

/// |x - y| <= ratio * |x|, for finite x, y and 0 <= ratio < 1.
constexpr bool within_relative(double x, double y, double ratio) {
  const ExactSum distance = exact_distance(x, y);
  if (distance.high == 0) return true;
  if (x == 0 || ratio == 0 || !is_finite(distance.high)) return false;
  // ratio * |x| = (product + rest) * 2^exponent, with both factors in [1/2, 1): nothing under- or overflows.
  const Scaled of_x = split(magnitude(x));
  const Scaled of_ratio = split(ratio);
  const double product = of_x.factor * of_ratio.factor;
  const double rest = product_error(of_x.factor, of_ratio.factor, product);
  const int exponent = of_x.exponent + of_ratio.exponent;

  const Scaled of_distance = split(distance.high);
  const int shift = of_distance.exponent - exponent;
  if (shift < -2) return true;  // the distance is at most 1/8, the product at least 1/4
  if (shift > 1) return false;  // the distance is at least 2, the product below 1
  const double scaled = scale(of_distance.factor, shift);
  // Rounding is monotone, so the rounded numbers decide unless they are equal.
  if (scaled != product) return scaled < product;
  // The product's error is 0 or at least 2^-106, so underflow of the scaled error changes no comparison but that with
  // 0.
  if (rest == 0) return distance.low <= 0;
  return scale(distance.low, -exponent) <= rest;
}

/// The largest integer distance that an absolute bound allows; no distance is above the largest number of its type.
template <class Distance = std::uint64_t>
constexpr Distance integer_limit(double bound) {
  constexpr auto kMost = std::numeric_limits<Distance>::max();
  // Rounded up to a power of two where binary64 does not hold it.
  if (bound >= static_cast<double>(kMost)) return kMost;
  return static_cast<Distance>(bound);
}

}  // namespace quern::verifier
