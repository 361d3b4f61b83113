// First pass of measure_quality: everything that needs each element once.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include <quern/array.h>

#include "libcompress/metrics/blocks.h"

namespace quern::metrics {

/// A sum that carries its rounding error along (Neumaier 1974).
class CompensatedSum {
 public:
  void add(double value) {
    const double sum = sum_ + value;
    rest_ += std::fabs(sum_) >= std::fabs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
    sum_ = sum;
  }
  void add(const CompensatedSum& other) {
    add(other.sum_);
    rest_ += other.rest_;
  }
  /// The plain sum once that is infinite, because the error of an infinite sum is not a number.
  double value() const { return std::isfinite(sum_) ? sum_ + rest_ : sum_; }

 private:
  double sum_ = 0.0;
  double rest_ = 0.0;
};

/// Over the valid elements, but for `specials_lost`.
struct ErrorStats {
  std::uint64_t valid = 0;
  std::uint64_t specials_lost = 0;
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double max_error = 0.0;
  std::uint64_t max_error_index = 0;
  double max_pointwise_rel = 0.0;
  CompensatedSum error;          ///< sum of (x - x') * scale
  CompensatedSum squared_error;  ///< sum of ((x - x') * scale)^2
  std::uint64_t max_ulp = 0;

  /// `other` follows this in index order.
  void merge(const ErrorStats& other);
};

/// `scale`, a power of two, keeps squares of very large or very small errors in range; it touches the two sums only.
Result<ErrorStats> error_stats(const ArrayView& original, const ArrayView& reconstructed,
                               std::span<const std::uint64_t> fill_bits, double scale, TaskRunner& runner,
                               Progress& progress);

}  // namespace quern::metrics
