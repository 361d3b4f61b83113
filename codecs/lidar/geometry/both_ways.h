// The encoder's check of what decodes: is every point within the bound of a decoded one, and every decoded one within
// the bound of a point? Exact integers, see fixed_point.h.
#pragma once

#include <cstdint>
#include <span>

#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/lidar/geometry/fine_points.h"

namespace quern::codec::lidar {

struct BothWays {
  Vector<std::uint32_t> uncovered;       ///< places in `points` of those that no decoded point is near
  std::uint64_t strays = 0;              ///< decoded points that are near no point
  std::int64_t largest_square = 0;       ///< of all other distances, in fine units
  Vector<std::uint32_t> nearest_source;  ///< for each decoded point, the place in `points`; UINT32_MAX for strays
};

/// `reach`: what enforceable() says of the bound. The result does not depend on `runner`. Fails with `out_of_memory`;
/// may throw std::bad_alloc.
Result<BothWays> check_both_ways(std::span<const FinePoint> points, std::span<const FinePoint> decoded,
                                 std::int64_t reach, TaskRunner& runner);

}  // namespace quern::codec::lidar
