#include "codecs/lidar/geometry/near_points.h"

#include "kernels/lidar/cpu/build_grid.h"

namespace quern::codec::lidar {

NearPoints::NearPoints(std::span<const FinePoint> points, std::int64_t reach, unsigned fineness)
    : cells_(points.size(), reach, fineness), begins_(cells_.buckets() + 1), entries_(points.size()) {
  Vector<std::uint32_t> next(cells_.buckets());
  Vector<std::uint32_t> bucket(points.size());
  kernels::build_grid(cells_, points, begins_, next, bucket, entries_);
}

NearPoints::Nearest NearPoints::nearest(const FinePoint& point, const Nearest& hint) const {
  const kernels::NearGrid grid{cells_, begins_.data(), begins_.data() + 1, entries_.data()};
  return grid.nearest(point, hint);
}

}  // namespace quern::codec::lidar
