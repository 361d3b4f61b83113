// Finds the nearest of a set of points within a distance: the grid of kernels/lidar with memory of its own. The
// encoder's own check; the tests check with code that shares nothing with this.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/lidar/geometry/fine_points.h"
#include "kernels/lidar/near_grid.h"

namespace quern::codec::lidar {

class NearPoints {
 public:
  using Nearest = kernels::NearestPoint;

  /// `reach` is in fine units, at least 1; `fineness` as for kernels::GridCells. Keeps a copy of the points. May throw
  /// std::bad_alloc.
  NearPoints(std::span<const FinePoint> points, std::int64_t reach, unsigned fineness);

  /// The nearest point within reach, the lowest index of equals. `hint`: see kernels::NearGrid.
  Nearest nearest(const FinePoint& point, const Nearest& hint) const;
  Nearest nearest(const FinePoint& point) const { return nearest(point, Nearest()); }

 private:
  kernels::GridCells cells_;
  Vector<std::uint32_t> begins_;  ///< of each bucket, and the end
  Vector<kernels::GridEntry> entries_;
};

}  // namespace quern::codec::lidar
