// Classes of masked cells beside the rim of a mask, for masks that are coded by levels: values of one class often lie
// where masked cells meet others, as zeros along a coast. Host and device code use it alike.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/common/bits.h"

namespace quern::kernels {

/// Masked cells of a mask in rows, 64 at a time. `bits`: see MaskBits, C order.
template <class Bits>
class MaskRows {
 public:
  constexpr MaskRows(const Bits& bits, std::uint64_t cells, std::uint64_t cols)
      : bits_(bits), rows_(cells / cols), cols_(cols) {}

  constexpr std::uint64_t rows() const { return rows_; }
  /// Groups of 64 cells of a row.
  constexpr std::uint64_t along() const { return (cols_ + 63) / 64; }
  constexpr std::uint64_t first_cell(std::uint64_t row, std::uint64_t k) const { return row * cols_ + 64 * k; }
  /// Those of group k that are columns.
  constexpr std::uint64_t columns(std::uint64_t k) const {
    return cols_ - 64 * k >= 64 ? ~UINT64_C(0) : (UINT64_C(1) << (cols_ - 64 * k)) - 1;
  }
  constexpr std::uint64_t masked(std::uint64_t row, std::uint64_t k) const {
    return bits_.window(first_cell(row, k)) & columns(k);
  }
  /// Masked cells next to one that is not: above, below, beside or across a corner. Beyond the rows their border goes on.
  constexpr std::uint64_t rim(std::uint64_t row, std::uint64_t k) const {
    const std::uint64_t inner =
        within(row == 0 ? 0 : row - 1, k) & within(row, k) & within(row + 1 < rows_ ? row + 1 : row, k);
    return masked(row, k) & ~inner;
  }

 private:
  /// Masked cells whose neighbours in the row are masked, too.
  constexpr std::uint64_t within(std::uint64_t row, std::uint64_t k) const {
    const std::uint64_t at = first_cell(row, k), own = bits_.window(at);
    const std::uint64_t before = k == 0 ? own << 1 | (own & 1) : bits_.window_before(at, 1);
    std::uint64_t after = bits_.window(at + 1);
    if (cols_ - 64 * k <= 64) {
      const std::uint64_t last = UINT64_C(1) << (cols_ - 64 * k - 1);
      after = (after & ~last) | (own & last);
    }
    return before & own & after;
  }

  Bits bits_;
  std::uint64_t rows_;
  std::uint64_t cols_;
};

/// What the lowest bits of the classes' numbers cost, estimated in half bits: 0 for one class.
struct LevelClassCost {
  std::uint64_t masked = 0;
  std::uint64_t changes = 0;  ///< of bits, between masked cells side by side in a row
  std::uint64_t rim = 0;
  std::uint64_t others = 0;  ///< cells whose lowest bit does not say whether they are of the rim

  constexpr LevelClassCost& operator+=(const LevelClassCost& more) {
    masked += more.masked;
    changes += more.changes;
    rim += more.rim;
    others += more.others;
    return *this;
  }
  /// As a plane without a reference, and beside the rim.
  constexpr std::uint64_t alone() const { return std::min(9 * changes, 2 * masked); }
  constexpr std::uint64_t beside_rim() const { return 5 * others + 5 * rim / 8; }
};

/// Of one group of cells. `number(at)`: 64 bits of the numbers from a cell on.
template <class Bits, class Number>
constexpr LevelClassCost level_class_cost(const MaskRows<Bits>& rows, std::uint64_t row, std::uint64_t k,
                                          Number&& number) {
  LevelClassCost cost;
  const std::uint64_t masked = rows.masked(row, k), bits = number(rows.first_cell(row, k)) & masked;
  const std::uint64_t rim = rows.rim(row, k);
  cost.masked = popcount(masked);
  // Pairs within the 64 cells.
  cost.changes = popcount((bits ^ bits << 1) & masked & masked << 1 & ~UINT64_C(1));
  cost.rim = popcount(rim);
  cost.others = popcount(bits ^ rim);
  return cost;
}

}  // namespace quern::kernels
