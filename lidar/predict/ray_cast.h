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
  /// May throw std::bad_alloc: 32 bytes a ray.
  explicit RayCast(const SensorRays& rays);

  /// A point within Move::kMostUnits. O(log rings + log columns).
  void add(const UnitPoint& point);

  /// On each ray that was met, ring after ring: the place between the nearest points on both sides where they may be of
  /// one surface, else both. May throw std::bad_alloc.
  Vector<codec::lidar::PredictedPoint> seen() const;

 private:
  kernels::RayView view() const { return {rays_.rings.data(), rays_.rings.size(), table_.search()}; }

  const SensorRays& rays_;
  codec::lidar::StepTable table_;
  Vector<kernels::RayHit> hits_;
};

}  // namespace quern::lidar
