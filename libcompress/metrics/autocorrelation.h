// Second pass of measure_quality: how the error at one place resembles the error a few places further on.
#pragma once

#include <cstdint>
#include <span>

#include <quern/array.h>
#include <quern/memory.h>

#include "libcompress/metrics/blocks.h"

namespace quern::metrics {

inline constexpr unsigned kMaxLags = 256;

struct ErrorScale {
  double mean = 0.0;    ///< mean of (x - x') * factor over valid elements
  double factor = 1.0;  ///< a power of two that brings the largest error near 1
  bool all_valid = false;
};

/// r_k, k = 1..lags: mean of (e_i - m)(e_{i+k} - m) over pairs of valid elements in one row of the fastest axis,
/// divided by the variance of e over all valid elements. 0 where there is no pair or no variance. All errors must be
/// finite.
Result<Vector<double>> error_autocorrelation(const ArrayView& original, const ArrayView& reconstructed,
                                             std::span<const std::uint64_t> fill_bits, unsigned lags,
                                             const ErrorScale& scale, TaskRunner& runner, Progress& progress);

}  // namespace quern::metrics
