// The points of a scan in fine coordinates, and those that have none.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/lidar/geometry/fixed_point.h"
#include "kernels/lidar/near_grid.h"

namespace quern::codec::lidar {

using FinePoint = kernels::GridPoint;

struct FinePoints {
  Vector<FinePoint> points;
  Vector<std::uint32_t> sources;   ///< of each, its place in the scan; rising
  Vector<std::uint32_t> verbatim;  ///< places of points without fine coordinates; rising
};

/// May throw std::bad_alloc.
FinePoints fine_points(std::span<const std::uint32_t> words, const Scale& scale);

/// Squared distance, saturated: fine coordinates lie within 2^49, so each difference is clamped to 2^30.
constexpr std::int64_t squared_distance(const FinePoint& a, const FinePoint& b) {
  std::int64_t sum = 0;
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::int64_t d = a[axis] - b[axis];
    if (d < 0) d = -d;
    if (d > INT64_C(1) << 30) d = INT64_C(1) << 30;
    sum += d * d;
  }
  return sum;
}

}  // namespace quern::codec::lidar
