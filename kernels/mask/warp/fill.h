// Gaps filled from valid neighbours by a warp, row by row: the values that fill_segment writes. The segment is read,
// the working copy is written; so rows may take their values from rows that had gaps themselves.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/mask/fill.h"
#include "kernels/mask/warp/memory.h"

namespace quern::kernels {

/// Whether a row has a valid cell; for RowSource.
template <class X>
class LaneHasValid {
 public:
  constexpr LaneHasValid(const std::uint8_t* classes, std::uint32_t cols) : classes_(classes), cols_(cols) {}
  constexpr bool operator()(std::uint32_t row) const {
    const std::uint8_t* const classes = classes_ + row * cols_;
    for (std::uint32_t x = 0; x < cols_; x += kLanes) {
      if (ballot_of<X>([&](auto lane) { return x + lane < cols_ && X::load(classes + x + lane, lane) == 0; }) != 0) {
        return true;
      }
    }
    return false;
  }

 private:
  const std::uint8_t* classes_;
  std::uint32_t cols_;
};

/// A row with its gaps filled, read piece by piece from its start.
template <class X, class Word>
class LaneFilledRow {
 public:
  using Words = typename X::template vec<Word>[kPiecesAhead];

  /// No row: zeros.
  constexpr LaneFilledRow() = default;
  /// `classes`: of the row, which has a valid cell; null when all are.
  constexpr LaneFilledRow(const Word* cells, const std::uint8_t* classes, std::uint32_t cols)
      : cells_(cells), classes_(classes), cols_(cols) {
    for (std::uint32_t x = 0; classes != nullptr && x < cols; x += kLanes) {
      const std::uint32_t valid = valid_cells(x);
      if (valid == 0) continue;
      last_valid_ = x + static_cast<std::uint32_t>(lowest_bit(valid));
      return;
    }
  }

  /// The cells of the next pieces, from x on, in order; zeros past the end.
  constexpr void read(std::uint32_t x, Words& words) {
    std::uint32_t valid[kPiecesAhead], before[kPiecesAhead];
    typename X::template vec<bool> flags[kPiecesAhead];
    X::lanes([&](auto lane) {
      unroll<kPiecesAhead>([&](auto j) {
        const auto at = x + static_cast<std::uint32_t>(j * kLanes + lane);
        X::set(flags[j], lane,
               cells_ != nullptr && at < cols_ && (classes_ == nullptr || X::load(classes_ + at, lane) == 0));
      });
    });
    unroll<kPiecesAhead>([&](auto j) {
      valid[j] = X::ballot(flags[j]);
      before[j] = last_valid_;
      if (valid[j] != 0) last_valid_ = x + static_cast<std::uint32_t>(j * kLanes) + last_bit(valid[j]);
    });
    X::lanes([&](auto lane) {
      unroll<kPiecesAhead>([&](auto j) {
        const auto at = x + static_cast<std::uint32_t>(j * kLanes + lane);
        const std::uint32_t up_to = valid[j] & first_lanes(static_cast<std::uint32_t>(lane) + 1);
        const std::uint32_t from = up_to != 0 ? at - static_cast<std::uint32_t>(lane) + last_bit(up_to) : before[j];
        X::set(words[j], lane, cells_ != nullptr && at < cols_ ? cells_[from] : Word{0});
      });
    });
  }

 private:
  static constexpr std::uint32_t last_bit(std::uint32_t bits) { return bit_length(bits) - 1; }
  constexpr std::uint32_t valid_cells(std::uint32_t x) const {
    return ballot_of<X>([&](auto lane) { return x + lane < cols_ && X::load(classes_ + x + lane, lane) == 0; });
  }

  const Word* cells_ = nullptr;
  const std::uint8_t* classes_ = nullptr;
  std::uint32_t cols_ = 0;
  std::uint32_t last_valid_ = 0;  ///< column of the last valid cell read, at first of the row's first
};

/// Writes the segment with its gaps filled to `copy`, contiguous in C order.
template <class X, class Word>
constexpr void fill_lanes(const LaneSegment<Word>& segment, const std::uint8_t* classes,
                          std::remove_const_t<Word>* copy) {
  const std::uint32_t rows = segment.rows(), cols = segment.cols();
  RowSource source(rows, LaneHasValid<X>(classes, cols));
  for (std::uint32_t r = 0; r < rows; ++r) {
    const std::uint32_t from = source(r);
    LaneFilledRow<X, std::remove_const_t<Word>> row;
    if (from < rows) row = {segment.row(from), classes + from * cols, cols};
    for (std::uint32_t x = 0; x < cols; x += kPiecesAhead * kLanes) {
      typename X::template vec<std::remove_const_t<Word>> words[kPiecesAhead];
      row.read(x, words);
      X::lanes([&](auto lane) {
        unroll<kPiecesAhead>([&](auto j) {
          const auto at = x + static_cast<std::uint32_t>(j * kLanes + lane);
          if (at < cols) copy[static_cast<std::uint64_t>(r) * cols + at] = X::get(words[j], lane);
        });
      });
    }
  }
}

/// Bit k: chunk k of the segment, in raster order, has no valid cell. At most 64 chunks of that shape (smaller at the
/// upper ends).
template <class X, class Word>
constexpr std::uint64_t masked_chunks(const LaneSegment<Word>& segment, const std::uint8_t* classes,
                                      const std::uint32_t (&chunk)[3]) {
  std::uint32_t counts[3];
  for (unsigned a = 0; a < 3; ++a) counts[a] = (segment.extents[a] + chunk[a] - 1) / chunk[a];
  std::uint64_t masked = 0;
  for (std::uint32_t k = 0; k < counts[0] * counts[1] * counts[2]; ++k) {
    const std::uint32_t index[3] = {k / counts[2] / counts[1], k / counts[2] % counts[1], k % counts[2]};
    std::uint32_t begin[3], extents[3];
    unroll<3>([&](auto a) {
      begin[a] = index[a] * chunk[a];
      const std::uint32_t left = segment.extents[a] - begin[a];
      extents[a] = left < chunk[a] ? left : chunk[a];
    });
    bool any_valid = false;
    for (std::uint32_t row = 0; row < extents[0] * extents[1] && !any_valid; ++row) {
      const std::uint32_t i = begin[0] + row / extents[1], y = begin[1] + row % extents[1];
      const std::uint8_t* const cells = classes + (i * segment.extents[1] + y) * segment.extents[2] + begin[2];
      for (std::uint32_t x = 0; x < extents[2] && !any_valid; x += kLanes) {
        any_valid =
            ballot_of<X>([&](auto lane) { return x + lane < extents[2] && X::load(cells + x + lane, lane) == 0; }) != 0;
      }
    }
    if (!any_valid) masked |= UINT64_C(1) << k;
  }
  return masked;
}

}  // namespace quern::kernels
