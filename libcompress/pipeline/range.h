// Passes over all values: their range and their squared error.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/array.h>
#include <quern/compress.h>
#include <quern/execution.h>

#include "libcompress/pipeline/exact_range.h"

namespace quern {

/// Nothing when no value is valid. O(elems), exact, whatever the number of threads.
std::optional<ExactRange> exact_range(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                      TaskRunner& runner);

/// Sum of squared differences over the valid elements of `original` and their number. The order of summation is fixed:
/// blocks of 65536 elements, then blocks in order.
struct SquaredError {
  double sum = 0.0;
  std::uint64_t valid = 0;
};
SquaredError squared_error(const ArrayView& original, const void* decoded, std::span<const std::uint64_t> fill_bits,
                           TaskRunner& runner);

}  // namespace quern
