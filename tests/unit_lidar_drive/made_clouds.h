// Clouds for the tests of drives: a small scan in each kind of coordinates, with attributes of many types.
#pragma once

#include <cstdint>

#include "lidar/cloud/point_cloud.h"

namespace quern::lidar_test {

/// About `points` points of a spinning scan with the columns intensity (f32) and ring (f32): what a .bin file holds.
lidar::PointCloud small_scan(unsigned points, std::uint64_t seed);
/// The same points in another kind. f64: moved far from the origin, with low bits of their own.
lidar::PointCloud as_f64(const lidar::PointCloud& cloud);
lidar::PointCloud as_scaled(const lidar::PointCloud& cloud, double scale);
/// With columns of all types that a file may hold.
lidar::PointCloud with_columns(lidar::PointCloud cloud);

/// Bit for bit, names and types of columns included.
bool same_cloud(const lidar::PointCloud& a, const lidar::PointCloud& b);

}  // namespace quern::lidar_test
