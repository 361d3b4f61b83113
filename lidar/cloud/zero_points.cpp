#include "lidar/cloud/zero_points.h"

#include <algorithm>

namespace quern::lidar {
namespace {

/// Of `width` elements a point those of the points in `kept`.
template <class T>
void keep_points(Vector<T>& values, const Vector<std::uint64_t>& kept, std::size_t width) {
  std::size_t at = 0;
  for (const std::uint64_t point : kept) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(point * width);
    std::copy_n(from, width, values.begin() + static_cast<std::ptrdiff_t>(at));
    at += width;
  }
  values.resize(at);
}

}  // namespace

std::uint64_t drop_zero_points(PointCloud& cloud) {
  const std::uint64_t points = cloud.points();
  Vector<std::uint64_t> kept;
  for (std::uint64_t i = 0; i < points; ++i)
    if (cloud.position(i) != std::array<double, 3>{0, 0, 0}) kept.push_back(i);
  if (kept.size() == points) return 0;
  if (cloud.kind == CoordinateKind::f64) {
    keep_points(cloud.doubles, kept, 3);
  } else {
    keep_points(cloud.words, kept, 3);
  }
  for (CloudColumn& column : cloud.columns) keep_points(column.values, kept, dtype_bytes(column.type));
  cloud.rows = 0;
  return points - kept.size();
}

}  // namespace quern::lidar
