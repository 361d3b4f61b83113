// The rays of a spinning sensor that turns about z: rings of one elevation each, and whole steps of the azimuth.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/memory.h>

#include "codecs/lidar/rays/direction.h"
#include "lidar/predict/pose.h"

namespace quern::lidar {

/// A laser's returns lie at z = height + slope * distance from the axis.
struct Ring {
  std::int32_t slope = 0;   ///< units of 2^-16, within +-kMostSlope
  std::int32_t height = 0;  ///< units of 0.1 mm, within +-kMostHeight

  bool operator==(const Ring&) const = default;
};

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
