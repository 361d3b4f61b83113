// The elements of a chunk as rows of its levels: which are special, and what they are as numbers and in units.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "codecs/stencil/elements.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/samples.h"
#include "codecs/stencil/levels/sections.h"
#include "codecs/stencil/levels/sort.h"
#include "codecs/stencil/levels/view.h"
#include "codecs/stencil/levels/walk.h"

namespace quern::codec::stencil {

/// Memory of rows: whole blocks of the longest row, but classes of all elements in the order of coding.
struct LevelRowRoom {
  double* originals = nullptr;
  std::int64_t* targets = nullptr;
  std::uint8_t* special = nullptr;
};

/// Rows are taken from the array whenever they are wanted, or from a copy in the order of coding.
template <class Element>
class LevelRows final : public TargetRows {
 public:
  using Bits = typename Element::Bits;
  /// Whether a copy of the elements lies where the codes of the finest level will: each as long as a code, it goes when
  /// its element is coded.
  static constexpr bool kSorted = sizeof(Bits) == sizeof(std::uint32_t);

  /// All outlive the rows; `format`: of the values.
  LevelRows(const ChunkSpec& spec, const ConstBox3& in, const LevelsView& view, const PredictionFormat& format,
            const LevelRowRoom& room)
      : spec_(spec), in_(in), view_(view), format_(format), room_(room), first_(first_of_levels(view.axes)) {}

  void open(unsigned level) {
    level_ = level;
    for (std::size_t c = 0; c < kParityClasses; ++c)
      extents_[c] = view_.axes.exists(c, level) ? extents_of_class(view_.axes, level, c) : ClassExtents{};
  }
  /// From now on rows are taken from such a copy.
  void take_from(const SortedElements& sorted) { sorted_ = sorted; }
  bool masked() const { return in_.special != nullptr; }
  const double* originals() const { return room_.originals; }  ///< of the row loaded last
  /// Of the level's elements in the order of coding, or null.
  const std::uint8_t* special(std::size_t code) const {
    return masked() ? room_.special + first_[level_] + code : nullptr;
  }
  /// Bits of a row's elements in the array, each row_step() behind the one before.
  const Bits* elements(std::size_t parity_class, const RowIndex& index) const {
    return static_cast<const Bits*>(in_.data) + view_.row_start(parity_class, level_, index, view_.strides);
  }
  std::size_t row_step() const { return view_.row_step(level_, view_.strides); }

  /// Which elements of a level are special.
  template <class Grid>
  void load_special(const Grid& grid) {
    const std::size_t step = view_.row_step(level_, view_.special_strides);
    for_coded_runs(grid, [&](const CodedRun& run) {
      for_rows(grid, run, [&](const CodedRow& row, std::size_t) {
        const std::uint8_t* const special =
            in_.special + view_.row_start(row.place.parity_class, level_, row.place.index, view_.special_strides);
        std::uint8_t* const mask = room_.special + first_[level_] + row.code;
        for (std::size_t x = 0; x < row.columns; ++x) mask[x] = special[x * step] != 0 ? 1 : 0;
      });
      return true;
    });
  }

  /// Fills the row's originals, and its targets: special elements take the ordinary one before them in their row.
  const std::int64_t* row(std::size_t parity_class, const RowIndex& index, std::size_t code) override {
    const std::size_t columns = columns_of(parity_class);
    load_originals(parity_class, index, code);
    std::int64_t* const to = room_.targets;
    spec_.kernels->units(room_.originals, columns, format_.base, 1 / format_.unit(), to);
    if (!masked()) return to;
    const std::uint8_t* const mask = special(code);
    std::int64_t last = 0;
    for (std::size_t x = columns; x-- > 0;)
      if (mask[x] == 0) last = to[x];
    for (std::size_t x = 0; x < columns; ++x) {
      if (mask[x] != 0) to[x] = last;
      last = to[x];
    }
    return to;
  }
  const std::int64_t* row(const CodedRow& coded) {
    return row(coded.place.parity_class, coded.place.index, coded.code);
  }
  /// Of the row whose first point has number `code`.
  void load_originals(std::size_t parity_class, const RowIndex& index, std::size_t code) {
    const std::size_t columns = columns_of(parity_class);
    if constexpr (kSorted) {
      if (sorted_.coarser != nullptr) {
        const Bits* const row = (level_ == 0 ? sorted_.finest : sorted_.coarser + first_[level_]) + code;
        return widen_elements<Element>(*spec_.kernels, row, 1, columns, room_.originals);
      }
    }
    const std::size_t step = row_step();
    const Bits* const from = elements(parity_class, index);
    widen_elements<Element>(*spec_.kernels, from, step, columns, room_.originals);
    // Processors do not foresee rows that skip others, and memory takes longer than short rows do.
    RowIndex ahead = index;
    if (!move_ahead(extents_[parity_class], ahead)) return;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(elements(parity_class, ahead));
    for (std::size_t at = 0; at < columns * step * sizeof(Bits); at += kLineBytes) __builtin_prefetch(bytes + at);
  }

 private:
  static constexpr std::size_t kLineBytes = 64;  // of memory that are fetched together

  static constexpr std::size_t kRowsAhead = 3;

  /// To the row of a class that is kRowsAhead later, in the same run or the next; false where there is none.
  bool move_ahead(const ClassExtents& extents, RowIndex& index) const {
    const std::size_t axis = run_axis(view_.axes);
    if (axis == kMaxAxes) return false;
    index[axis] += kRowsAhead;
    if (index[axis] < extents[axis]) return true;
    if (axis == 0) return false;
    index[axis] -= extents[axis];
    ++index[axis - 1];
    return index[axis] < extents[axis] && index[axis - 1] < extents[axis - 1];
  }

  std::size_t columns_of(std::size_t parity_class) const { return extents_[parity_class][view_.axes.rank - 1]; }

  const ChunkSpec& spec_;
  const ConstBox3& in_;
  const LevelsView& view_;
  const PredictionFormat& format_;
  LevelRowRoom room_;
  SortedElements sorted_;
  std::array<std::size_t, kMaxLevels + 1> first_;
  unsigned level_ = 0;
  std::array<ClassExtents, kParityClasses> extents_{};  ///< of the classes of the level
};

}  // namespace quern::codec::stencil
