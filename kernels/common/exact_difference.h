// Decides |x - r| <= bound in real arithmetic, whatever binary64 rounds.
#pragma once

namespace quern::kernels {

/// Exact test by an error-free difference (Knuth's TwoSum): the rounded difference and its rounding error together are
/// the true one. False for NaN and for infinite differences. `bound` is finite and not negative.
[[gnu::always_inline]] constexpr bool within_bound(double x, double r, double bound) {
  const double sum = x - r;
  // TwoSum of x and -r.
  const double minus_r = -r;
  const double virtual_r = sum - x;
  const double virtual_x = sum - virtual_r;
  const double tail = (x - virtual_x) + (minus_r - virtual_r);
  const double distance = sum < 0 ? -sum : sum;
  const double distance_tail = sum < 0 ? -tail : tail;
  return distance < bound || (distance == bound && distance_tail <= 0);
}

}  // namespace quern::kernels
