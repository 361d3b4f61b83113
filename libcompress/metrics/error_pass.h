// First pass of measure_quality: everything that needs each element once.
#pragma once

#include <cstdint>
#include <span>

#include <quern/array.h>

#include "kernels/metrics/compensated_sum.h"
#include "kernels/metrics/error_measures.h"
#include "libcompress/metrics/blocks.h"

namespace quern::metrics {

struct ErrorStats : verifier::ErrorExtremes {
  verifier::CompensatedSum error;          ///< sum of (x - x') * scale
  verifier::CompensatedSum squared_error;  ///< sum of ((x - x') * scale)^2

  /// `other` follows this in index order, which fixes the order of the sums.
  void merge(const ErrorStats& other);
};

/// `scale`, a power of two, keeps squares of very large or very small errors in range; it touches the two sums only.
Result<ErrorStats> error_stats(const ArrayView& original, const ArrayView& reconstructed,
                               std::span<const std::uint64_t> fill_bits, double scale, TaskRunner& runner,
                               Progress& progress);

}  // namespace quern::metrics
