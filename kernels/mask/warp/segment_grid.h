// Where the segments of an array lie: boxes of chunks, numbered in raster order, as docs/format.md cuts them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/mask/warp/memory.h"

namespace quern::kernels {

/// A contiguous array, extents slowest axis first.
struct SegmentGrid {
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::array<std::uint64_t, 3> chunk{1, 1, 1};        ///< extents of a chunk in elements
  std::array<std::uint64_t, 3> per_segment{1, 1, 1};  ///< chunks of a full segment along each axis

  /// Segments along an axis.
  constexpr std::uint64_t along(std::size_t axis) const {
    const std::uint64_t step = chunk[axis] * per_segment[axis];
    return (extents[axis] + step - 1) / step;
  }
  constexpr std::uint64_t segments() const { return along(0) * along(1) * along(2); }
  /// Extents of the largest segment, the first.
  constexpr SegmentExtents segment_extents() const {
    SegmentExtents e{};
    for (std::size_t a = 0; a < 3; ++a) {
      const std::uint64_t full = chunk[a] * per_segment[a];
      e[a] = full < extents[a] ? full : extents[a];
    }
    return e;
  }
};

/// A segment of the array at `array`.
template <class Word>
constexpr LaneSegment<Word> lane_segment(const SegmentGrid& grid, Word* array, std::uint64_t segment) {
  LaneSegment<Word> s;
  s.strides[0] = grid.extents[1] * grid.extents[2];
  s.strides[1] = grid.extents[2];
  const std::uint64_t along[2] = {grid.along(1), grid.along(2)};
  const std::uint64_t index[3] = {segment / along[1] / along[0], segment / along[1] % along[0], segment % along[1]};
  std::uint64_t offset = 0;
  unroll<3>([&](auto a) {
    const std::uint64_t full = grid.chunk[a] * grid.per_segment[a];
    const std::uint64_t begin = index[a] * full, left = grid.extents[a] - begin;
    s.extents[a] = static_cast<std::uint32_t>(left < full ? left : full);
    offset += begin * (a == 2 ? 1 : s.strides[a < 2 ? a : 0]);
  });
  s.cells = array + offset;
  return s;
}

}  // namespace quern::kernels
