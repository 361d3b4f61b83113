// Range images as clouds. An image's cloud has a point for each pixel, row after row, NaN where nothing came back, a
// column `range`, then the columns of other images, and the sensor as its file_header.
#pragma once

#include <optional>
#include <span>

#include <quern/status.h>

#include "lidar/cloud/point_cloud.h"
#include "lidar/images/range_sensor.h"

namespace quern::lidar {

inline constexpr const char* kRangeColumn = "range";

/// `ranges`: 4 bytes for each pixel, little-endian millimetres. `others`: columns of as many elements. Fails with
/// `corrupt` for ranges that project() refuses.
Result<PointCloud> cloud_of_image(const RangeSensor& sensor, std::span<const std::uint8_t> ranges,
                                  Vector<CloudColumn> others);

/// Whether a cloud has, bit for bit, the points of the image in its column `range`.
bool is_image(const PointCloud& cloud);

/// The points of an image's cloud without those that are NaN, without range and sensor: what is coded under a bound.
PointCloud points_of_image(const PointCloud& cloud);

}  // namespace quern::lidar
