// Arrays of many axes as ones of three.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <quern/array.h>

namespace quern {

/// Extents of the last three axes; those before them are merged into the first of these. 1 where there are fewer.
inline std::array<std::uint64_t, 3> last_three_axes(const Shape& shape) {
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    const std::size_t from_end = shape.rank() - 1 - axis;
    extents[from_end >= 2 ? 0 : 2 - from_end] *= shape[axis];
  }
  return extents;
}

}  // namespace quern
