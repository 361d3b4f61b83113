// What a sensor would see of points that are known: for each of its rays what lies between the points nearest to it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "lidar/predict/sensor_rays.h"

namespace quern::lidar {

/// Collects points in a sensor's coordinates, in any order, and answers with points for each ray that met one.
class RayCast {
 public:
  /// May throw std::bad_alloc: 40 bytes a ray.
  explicit RayCast(const SensorRays& rays);

  /// A point within Move::kMostUnits. O(log rings + log columns).
  void add(const UnitPoint& point);

  /// On each ray that was met, ring after ring: the place between the nearest points on both sides where they may be of
  /// one surface, else both. May throw std::bad_alloc.
  Vector<codec::lidar::PredictedPoint> seen() const;

 private:
  /// The least score wins, of equals the least range, then x, then y: the order of points does not matter.
  struct Hit {
    std::int32_t score = INT32_MAX;
    std::int32_t range = 0;
    std::int32_t x = 0;
    std::int32_t y = 0;
    std::int32_t off = 0;  ///< height between the point and the ray

    bool is_there() const { return score != INT32_MAX; }
    auto operator<=>(const Hit&) const = default;
  };
  static bool are_one_surface(const Hit& a, const Hit& b);
  std::int64_t most_miss(std::size_t ring, bool above) const;
  std::int64_t height_at(std::size_t ring, std::int64_t range) const {
    return rays_.rings[ring].height + (rays_.rings[ring].slope * range >> 16);
  }

  const SensorRays& rays_;
  codec::lidar::StepTable table_;
  std::size_t columns_;
  Vector<std::array<Hit, 2>> hits_;  ///< ring after ring, each: nearest point not above the ray; above it
};

}  // namespace quern::lidar
