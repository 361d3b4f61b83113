// Ranges of valid values, and numbers made from them that never err upwards: the bound of a `rel` request is rounded
// down.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/array.h>
#include <quern/compress.h>
#include <quern/execution.h>

namespace quern {

struct ExactRange {
  ValueRange range;
  double width_down = 0.0;  ///< max - min of the elements themselves, rounded down to binary64
};

/// Nothing when no value is valid. O(elems), exact, whatever the number of threads.
std::optional<ExactRange> exact_range(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                      TaskRunner& runner);

/// max - min of finite numbers, max >= min, rounded down; the largest finite number when it overflows.
double difference_down(double max, double min);
/// Product of finite numbers >= 0, rounded down.
double product_down(double a, double b);

/// Sum of squared differences over the valid elements of `original` and their number. The order of summation is fixed:
/// blocks of 65536 elements, then blocks in order.
struct SquaredError {
  double sum = 0.0;
  std::uint64_t valid = 0;
};
SquaredError squared_error(const ArrayView& original, const void* decoded, std::span<const std::uint64_t> fill_bits,
                           TaskRunner& runner);

}  // namespace quern
