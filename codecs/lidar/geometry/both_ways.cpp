#include "codecs/lidar/geometry/both_ways.h"

#include <algorithm>

#include "codecs/lidar/geometry/near_points.h"

namespace quern::codec::lidar {

BothWays check_both_ways(std::span<const FinePoint> points, std::span<const FinePoint> decoded, std::int64_t reach) {
  BothWays result;
  const NearPoints near_decoded(decoded, reach);
  for (std::size_t i = 0; i < points.size(); ++i) {
    const NearPoints::Nearest nearest = near_decoded.nearest(points[i]);
    if (nearest.index == UINT32_MAX) {
      result.uncovered.push_back(static_cast<std::uint32_t>(i));
    } else {
      result.largest_square = std::max(result.largest_square, nearest.square);
    }
  }
  const NearPoints near_points(points, reach);
  result.nearest_source.reserve(decoded.size());
  for (const FinePoint& point : decoded) {
    const NearPoints::Nearest nearest = near_points.nearest(point);
    result.nearest_source.push_back(nearest.index);
    if (nearest.index == UINT32_MAX) {
      ++result.strays;
    } else {
      result.largest_square = std::max(result.largest_square, nearest.square);
    }
  }
  return result;
}

}  // namespace quern::codec::lidar
