// A box of the grid as the axes of a chunk in levels: one of the grid's axes may be split in two, axes of extent 1 are
// left out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/stencil/levels/axes.h"
#include "codecs/stencil/levels/form.h"

namespace quern::codec::stencil {

/// What a box is like in elements.
struct LevelsView {
  LevelAxes axes;
  std::array<std::size_t, kMaxAxes> strides{};
  std::array<std::size_t, kMaxAxes> special_strides{};
  std::array<std::uint8_t, kMaxAxes> grid_axis{};  ///< which one of the box's each is
  std::array<bool, kMaxAxes> is_inner{};           ///< the faster half of one that is split

  template <class Box>
  LevelsView(const Box& box, const LevelsForm& form) {
    axes.rank = 0;
    for (std::size_t g = 0; g < 3; ++g) {
      const std::uint64_t stride = g < 2 ? box.strides[g] : 1;
      const std::uint64_t special = g < 2 ? box.special_strides[g] : 1;
      const std::uint64_t inner = form.inner_of(g, box.extents[g]);
      for (const bool outer : {true, false}) {
        const std::uint64_t extent = outer ? box.extents[g] / inner : inner;
        if (extent == 1) continue;
        axes.extents[axes.rank] = static_cast<std::size_t>(extent);
        grid_axis[axes.rank] = static_cast<std::uint8_t>(g);
        is_inner[axes.rank] = inner > 1 && !outer;
        strides[axes.rank] = static_cast<std::size_t>(stride * (outer ? inner : 1));
        special_strides[axes.rank++] = static_cast<std::size_t>(special * (outer ? inner : 1));
      }
    }
    if (axes.rank == 0) axes.rank = 1;
    axes.sequential = form.sequential && axes.rank > 1;
    axes.edges = form.edges;
  }

  /// The same box as the second of two planes, of which the first is given: all its own axes are hierarchical, and one
  /// that is split is whole again where there would be more axes than there may be.
  template <class Box>
  static LevelsView after_reference(const Box& box, LevelsForm form) {
    form.sequential = false;
    form.edges = false;
    LevelsView view(box, form);
    if (view.axes.rank == kMaxAxes) {
      form.inner = 1;
      view = LevelsView(box, form);
    }
    for (std::size_t a = view.axes.rank++; a > 0; --a) {
      view.axes.extents[a] = view.axes.extents[a - 1];
      view.strides[a] = view.strides[a - 1];
      view.special_strides[a] = view.special_strides[a - 1];
      view.grid_axis[a] = view.grid_axis[a - 1];
      view.is_inner[a] = view.is_inner[a - 1];
    }
    // Both planes have their places in the box.
    view.axes.extents[0] = 2;
    view.axes.sequential = true;
    view.axes.given = 1;
    view.strides[0] = view.special_strides[0] = 0;
    return view;
  }

  /// Coordinate along an axis of a point of a class at a level.
  std::size_t place(std::size_t parity_class, unsigned level, std::size_t axis, std::size_t index) const {
    if (!axes.hierarchical(axis)) return index;
    return (2 * index + axes.parity(parity_class, axis)) << level;
  }
  /// Elements from the box's first to the first of a row of a class, by one of the two arrays of strides.
  template <class Index>
  std::size_t row_start(std::size_t parity_class, unsigned level, const Index& index,
                        const std::array<std::size_t, kMaxAxes>& by) const {
    std::size_t at = place(parity_class, level, axes.rank - 1, 0) * by[axes.rank - 1];
    for (std::size_t a = 0; a + 1 < axes.rank; ++a) at += place(parity_class, level, a, index[a]) * by[a];
    return at;
  }
  /// Elements from one point of a row to the next.
  std::size_t row_step(unsigned level, const std::array<std::size_t, kMaxAxes>& by) const {
    return by[axes.rank - 1] << (axes.live(axes.rank - 1, level) ? level + 1 : level);
  }
  /// Strides of the chunk itself in C order.
  std::array<std::size_t, kMaxAxes> dense() const {
    std::array<std::size_t, kMaxAxes> result{};
    std::size_t stride = 1;
    for (std::size_t a = axes.rank; a-- > 0;) {
      result[a] = stride;
      stride *= axes.extents[a];
    }
    if (axes.given > 0) result[0] = 0;
    return result;
  }
};

}  // namespace quern::codec::stencil
