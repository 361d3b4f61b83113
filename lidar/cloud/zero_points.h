// Points at the origin: what some sensors write for a ray that met nothing.
#pragma once

#include <cstdint>

#include "lidar/cloud/point_cloud.h"

namespace quern::lidar {

/// Takes away the points whose three coordinates are 0 (or -0), with their attributes, and returns how many they were.
/// What is left of an organised cloud, if any was taken away, is organised no more. O(points). May throw std::bad_alloc.
std::uint64_t drop_zero_points(PointCloud& cloud);

}  // namespace quern::lidar
