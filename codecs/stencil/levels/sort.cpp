// Rows of the box, taken apart level by level.
#include "codecs/stencil/levels/sort.h"

#include <algorithm>
#include <array>

#include "codecs/stencil/levels/samples.h"
#include "codecs/stencil/levels/sections.h"

namespace quern::codec::stencil {
namespace {

/// Elements with even numbers, and with odd ones.
void split(const std::uint32_t* from, std::size_t count, std::uint32_t* even, std::uint32_t* odd) {
  for (std::size_t i = 0; i < count / 2; ++i) {
    even[i] = from[2 * i];
    odd[i] = from[2 * i + 1];
  }
  if (count % 2 != 0) even[count / 2] = from[count - 1];
}

/// Where the elements of a level go.
class LevelPlaces {
 public:
  LevelPlaces(const LevelAxes& axes, unsigned level, std::uint32_t* to)
      : axes_(axes), level_(level), to_(to), places_(axes, level) {}

  /// The class of the elements of a row of the box with even numbers at this level.
  std::size_t even_class(const std::array<std::size_t, kMaxAxes>& row) const {
    std::size_t c = 0;
    for (std::size_t a = 0; a + 1 < axes_.rank; ++a) c = 2 * c + (row[a] >> level_ & 1);
    return 2 * c;
  }
  /// Where those of a class go.
  std::uint32_t* of(std::size_t parity_class, const std::array<std::size_t, kMaxAxes>& row) const {
    std::size_t number = 0;
    for (std::size_t a = 0; a + 1 < axes_.rank; ++a)
      number = number * axes_.class_points(parity_class, level_, a) + (row[a] >> (level_ + 1));
    return to_ + places_.of(parity_class, number);
  }

 private:
  const LevelAxes& axes_;
  unsigned level_;
  std::uint32_t* to_;
  CodePlaces places_;
};

}  // namespace

bool can_sort(const LevelsView& view) { return !view.axes.sequential && view.strides[view.axes.rank - 1] == 1; }

void sort_elements(const LevelsView& view, const std::uint32_t* from, const SortedElements& to) {
  constexpr std::size_t kLineElems = 16;  // of memory that are fetched together
  constexpr std::size_t kRowsAhead = 6;   // memory takes longer than a row does
  const LevelAxes& axes = view.axes;
  const unsigned top = axes.top();
  const auto first = first_of_levels(axes);
  Vector<LevelPlaces> levels;
  for (unsigned level = 0; level <= top; ++level)
    levels.emplace_back(axes, level, level == 0 ? to.finest : to.coarser + first[level]);
  const std::size_t last = axes.rank - 1;
  const std::size_t columns = axes.extents[last];
  const std::size_t rows = axes.elems() / columns;
  const auto next = [&](std::array<std::size_t, kMaxAxes>& row) {
    for (std::size_t a = last; a-- > 0;) {
      if (++row[a] < axes.extents[a]) return;
      row[a] = 0;
    }
  };
  const auto elements = [&](const std::array<std::size_t, kMaxAxes>& row) {
    std::size_t at = 0;
    for (std::size_t a = 0; a < last; ++a) at += row[a] * view.strides[a];
    return from + at;
  };
  std::array<std::size_t, kMaxAxes> row{};
  std::array<std::size_t, kMaxAxes> ahead{};
  for (std::size_t r = 0; r < std::min(rows, kRowsAhead); ++r) next(ahead);
  for (std::size_t r = 0; r < rows; ++r, next(row), next(ahead)) {
    // Processors do not foresee rows that do not follow each other.
    const std::uint32_t* const later = elements(ahead);
    for (std::size_t x = 0; x < columns; x += kLineElems) __builtin_prefetch(later + x);
    const std::uint32_t* left = elements(row);
    std::size_t count = columns;
    for (unsigned level = 0;; ++level) {
      const LevelPlaces& places = levels[level];
      const std::size_t c = places.even_class(row);
      if (level == top) {
        *places.of(0, row) = *left;
        break;
      }
      // Even ones are the next coarser level's unless the row itself is not.
      split(left, count, c != 0 ? places.of(c, row) : to.row, count > 1 ? places.of(c | 1, row) : nullptr);
      if (c != 0) break;
      left = to.row;
      count = (count + 1) / 2;
    }
  }
}

}  // namespace quern::codec::stencil
