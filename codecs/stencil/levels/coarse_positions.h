// Which of a chunk's points a coarse level of the array has, and where they go.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <quern/codec.h>

#include "codecs/stencil/levels/axes.h"
#include "codecs/stencil/levels/view.h"

namespace quern::codec::stencil {

/// Where the points of a coarse level go.
struct CoarsePlaces {
  void* data = nullptr;
  std::array<std::size_t, kMaxAxes> strides{};  ///< elements from one point that is kept to the next
  /// Binary logarithm of how many of the points that a chunk is decoded to make one that is kept: 0 where the chunk's
  /// own levels are the array's.
  std::array<unsigned, kMaxAxes> shift{};

  /// Whether a point is one to keep, by its number along an axis; where that is adds to `at`.
  bool keep(std::size_t point, std::size_t axis, std::size_t& at) const {
    const std::size_t number = point >> shift[axis];
    at += number * strides[axis];
    return number << shift[axis] == point;
  }
};

/// Distance along an axis of the places that the array keeps.
inline std::uint64_t step_along(const LevelForm& form, const LevelsView& view, std::size_t axis) {
  const LevelAxis& steps = form.axes[view.grid_axis[axis]];
  return view.is_inner[axis] ? steps.inner_step : steps.outer_step;
}

/// Places in `out`, whose extents the form gives, of points of a chunk that is decoded to level `has` of each axis.
inline CoarsePlaces coarse_places(const LevelForm& form, const LevelsView& view,
                                  const std::array<unsigned, kMaxAxes>& has, const MutableBox3& out) {
  CoarsePlaces to;
  to.data = out.data;
  for (std::size_t a = 0; a < view.axes.rank; ++a) {
    const std::size_t g = view.grid_axis[a];
    const bool outer_half = form.axes[g].inner > 1 && !view.is_inner[a];
    to.strides[a] =
        static_cast<std::size_t>((g < 2 ? out.strides[g] : 1) * (outer_half ? form.axes[g].inner_points() : 1));
    const auto wanted = static_cast<unsigned>(std::countr_zero(step_along(form, view, a)));
    to.shift[a] = wanted > has[a] ? wanted - has[a] : 0;
  }
  return to;
}

}  // namespace quern::codec::stencil
