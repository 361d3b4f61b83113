// The rays of a spinning sensor that turns about z: rings of one elevation each, and whole steps of the azimuth.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/memory.h>

#include "codecs/lidar/rays/direction.h"
#include "kernels/lidar/ray_hits.h"
#include "lidar/predict/pose.h"

namespace quern::lidar {

using Ring = kernels::RayRing;  ///< slopes within +-kMostSlope, heights within +-kMostHeight

struct SensorRays {
  static constexpr std::size_t kMostRings = 256;
  static constexpr std::int32_t kMostSlope = 1 << 20;
  static constexpr std::int32_t kMostHeight = 1 << 20;

  static constexpr std::int64_t kLeastSine = codec::lidar::kOne >> 10;

  codec::lidar::Direction step;  ///< of the azimuth, as tool R has it; y at least kLeastSine
  Vector<Ring> rings;            ///< slopes rise

  bool operator==(const SensorRays&) const = default;
};

/// Whether all numbers lie within their limits, slopes rise, and there are at most 2^20 rays.
bool are_rays(const SensorRays& rays);

/// Rings of a scan that is filed ring after ring, each beginning near the x axis, as Velodyne's are by KITTI; none where
/// fewer than 8 are found. Points within Move::kMostUnits. May throw std::bad_alloc.
std::optional<SensorRays> find_rays(std::span<const UnitPoint> scan);

}  // namespace quern::lidar
