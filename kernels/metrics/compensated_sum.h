// A sum that carries its rounding error along (Neumaier 1974).
#pragma once

#include "kernels/metrics/real.h"

namespace quern::verifier {

class CompensatedSum {
 public:
  constexpr void add(double value) {
    const double sum = sum_ + value;
    rest_ += magnitude(sum_) >= magnitude(value) ? (sum_ - sum) + value : (value - sum) + sum_;
    sum_ = sum;
  }
  constexpr void add(const CompensatedSum& other) {
    add(other.sum_);
    rest_ += other.rest_;
  }
  /// The plain sum once that is infinite, because the error of an infinite sum is not a number.
  constexpr double value() const { return is_finite(sum_) ? sum_ + rest_ : sum_; }

 private:
  double sum_ = 0.0;
  double rest_ = 0.0;
};

}  // namespace quern::verifier
