// Gaps filled from valid neighbours, and special values written back, as one thread does it.
// Each gap takes the value before it in its row; a gap at the start of a row the first valid value of the row. A row
// without valid cells takes the filled row above it (numbered through all planes), rows before all others the first row
// that has one. Without valid cells all is zero.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/mask/segment.h"

namespace quern::kernels {

/// Index of the first class in [x, n) that is zero (or not zero); eight cells at a time.
[[gnu::always_inline]] inline std::uint64_t skip_classes(const std::uint8_t* classes, std::uint64_t x, std::uint64_t n,
                                                         bool while_valid) {
  if (while_valid) {
    for (std::uint64_t word = 0; x + 8 <= n; x += 8) {
      std::memcpy(&word, classes + x, 8);
      if (word != 0) break;
    }
  }
  while (x < n && (classes[x] == 0) == while_valid) ++x;
  return x;
}

/// Fills the gaps of one row. False without valid cells.
template <class Word>
[[gnu::always_inline]] inline bool fill_row(Word* p, const std::uint8_t* classes, std::uint64_t n) {
  std::uint64_t x = skip_classes(classes, 0, n, false);
  if (x == n) return false;
  std::fill(p, p + x, p[x]);
  while ((x = skip_classes(classes, x, n, true)) < n) {
    const std::uint64_t end = skip_classes(classes, x, n, false);
    std::fill(p + x, p + end, p[x - 1]);
    x = end;
  }
  return true;
}

/// Fills the gaps of a working copy.
template <class Word>
void fill_segment(const SegmentBox<Word>& box, const std::uint8_t* classes) {
  const std::uint64_t cols = box.cols(), rows = box.rows();
  const Word* above = nullptr;
  std::uint64_t waiting = 0;  // rows before the first one that has a valid cell
  for (std::uint64_t r = 0; r < rows; ++r) {
    Word* const p = box.row(r);
    if (!fill_row(p, classes + r * cols, cols)) {
      if (above == nullptr) {
        ++waiting;
        continue;
      }
      std::memcpy(p, above, cols * sizeof(Word));
    }
    above = p;
    for (std::uint64_t w = 0; w < waiting; ++w) std::memcpy(box.row(w), p, cols * sizeof(Word));
    waiting = 0;
  }
  for (std::uint64_t w = 0; w < waiting; ++w) std::fill(box.row(w), box.row(w) + cols, Word{0});
}

/// Where the values of a row come from when gaps are filled: the row itself when it has a valid cell. Asked for rows in
/// rising order it looks at each row's classes about once. `HasValid` says whether a row has a valid cell.
template <class Row, class HasValid>
class RowSource {
 public:
  static constexpr Row kNone = ~Row{0};  ///< no cell is valid

  constexpr RowSource(Row rows, const HasValid& has_valid) : rows_(rows), has_valid_(has_valid) {}

  constexpr Row operator()(Row row) {
    Row r = row + 1;
    while (r > seen_ && !has_valid_(r - 1)) --r;
    if (r > seen_) last_ = r - 1;
    seen_ = row + 1;
    if (last_ != kNone) return last_;
    if (first_ == kNone) {
      first_ = seen_;
      while (first_ < rows_ && !has_valid_(first_)) ++first_;
    }
    return first_ < rows_ ? first_ : kNone;
  }

 private:
  Row rows_;
  HasValid has_valid_;
  Row seen_ = 0;       // rows looked at
  Row last_ = kNone;   // the last of them with a valid cell
  Row first_ = kNone;  // the first row with one, when none of them has
};

/// What special cells get back: bits of the classes, and of the verbatim cells in C order of the segment.
struct SpecialValues {
  const std::uint64_t* specials = nullptr;
  const std::uint8_t* classes = nullptr;
  const std::uint64_t* verbatim = nullptr;
  bool has_verbatim = false;
};

/// Writes special values back, row by row in C order.
class SpecialWriter {
 public:
  explicit SpecialWriter(const SpecialValues& values) : values_(values) {}

  /// Cells from C order index `first` on; `out` points to the first.
  template <class Word>
  void write_row(Word* out, std::uint64_t first, std::uint64_t n) {
    const std::uint8_t* classes = values_.classes + first;
    if (values_.has_verbatim) {
      next_ += static_cast<std::size_t>(std::count(values_.classes + seen_, classes, kVerbatimClass));
      seen_ = first + n;
    }
    for (std::uint64_t x = 0; (x = skip_classes(classes, x, n, true)) < n; ++x) {
      if (classes[x] != kVerbatimClass) {
        out[x] = static_cast<Word>(values_.specials[classes[x] - 1U]);
        continue;
      }
      out[x] = static_cast<Word>(values_.verbatim[next_++]);
    }
  }

 private:
  const SpecialValues values_;
  std::uint64_t seen_ = 0;  // cells before this one have been restored or passed over
  std::size_t next_ = 0;    // the verbatim value of the next verbatim cell
};

}  // namespace quern::kernels
