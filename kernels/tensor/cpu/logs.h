// Entry points of the kernels for second moments in log space on the CPU: bins of values, how far bins lie from their
// means, predictions, and sums for fitting them. One set for each instruction set; all is integers and all sets give
// the same. Deviations, means and predictions are in quarters of a bin.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cpu/isa.h"

namespace quern::kernels {

inline constexpr std::size_t kLogRowsAbove = 3;  ///< rows above that a prediction takes part of
inline constexpr unsigned kLogKeyShift = 16;     ///< bit patterns with the same upper half share an entry

/// The bins of bit patterns `lowest` .. `highest`: that of a pattern is the bin of its entry, or the next one where the
/// pattern lies above the entry's boundary.
struct LogBinTable {
  struct Entry {
    std::uint32_t bin;
    std::uint32_t boundary;
  };
  const Entry* entries = nullptr;  ///< of keys, the upper halves of patterns, from first_key on
  std::uint32_t first_key = 0;
  std::uint32_t lowest = 1;  ///< lowest > highest: there are no bins
  std::uint32_t highest = 0;
};

/// What is said of the elements of one row before any of them is known.
struct LogRow {
  std::int32_t row_mean = 0;
  const std::int32_t* column_means = nullptr;
  const std::int32_t* known = nullptr;
  const std::int32_t* above = nullptr;  ///< deviations of the elements right above; those above them lie `width` before
  std::size_t width = 0;
  std::int32_t shares[kLogRowsAbove] = {};  ///< in 1/64
  /// Sums of shares and deviations may need more than 32 bits.
  bool wide = false;
};

struct TensorLogKernels {
  /// bins[i] of values, -1 for those outside the table; returns how many those are.
  std::size_t (*find)(const LogBinTable& table, const std::uint8_t* values, std::size_t count, std::int32_t* bins);
  /// decoded[i] = values[bins[i]], 0 where the bin is below 0.
  void (*place)(const std::uint32_t* values, const std::int32_t* bins, std::size_t count, std::uint8_t* decoded);
  /// Sum over bins that are not below 0 of 4 bin - known - column mean, each below 2^24 in magnitude; `regular` gets
  /// their number.
  std::int64_t (*sum)(const std::int32_t* bins, const std::int32_t* known, const std::int32_t* column_means,
                      std::size_t count, std::size_t& regular);
  /// sums[i] += 4 bin - known - row mean and ++counts[i] where bins[i] is not below 0.
  void (*add_columns)(const std::int32_t* bins, const std::int32_t* known, std::int32_t row_mean, std::size_t count,
                      std::int32_t* sums, std::uint32_t* counts);
  /// narrow[i] = 4 bin - known - row mean - column mean kept within +-limit, 0 where the bin is below 0; returns the
  /// largest magnitude.
  std::int32_t (*narrow)(const std::int32_t* bins, const std::int32_t* known, std::int32_t row_mean,
                         const std::int32_t* column_means, std::size_t count, std::int32_t limit, std::int16_t* narrow);
  /// Sum of a[i] * b[i]. The caller sees to it that sums of a quarter of the products fit 32 bits.
  std::int64_t (*product)(const std::int16_t* a, const std::int16_t* b, std::size_t count);
  /// Bins become residuals; their deviations. Both are 0 where the bin is below 0.
  void (*residuals)(const LogRow& row, std::size_t count, std::int32_t* bins, std::int32_t* deviations);
  /// Residuals become bins; their deviations. Returns whether all are below `bins_there`; others count as bin 0.
  bool (*bins)(const LogRow& row, std::size_t count, std::uint32_t bins_there, std::int32_t* residuals,
               std::int32_t* deviations);
};

/// The kernels of an available level.
const TensorLogKernels& tensor_log_kernels(IsaLevel level);

}  // namespace quern::kernels
