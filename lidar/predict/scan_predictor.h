// Scans that were decoded, seen from another place: the prediction of a scan.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "lidar/predict/ray_cast.h"

namespace quern::lidar {

/// What is remembered of a decoded scan.
struct SeenFrame {
  Pose pose;
  Vector<UnitPoint> points;
};

/// Points of binary32 words in whole units, halves up, without those that are not within Move::kMostUnits. May throw
/// std::bad_alloc.
Vector<UnitPoint> unit_points(std::span<const std::uint32_t> words);

/// Predicts the scan of a sensor at a pose.
class ScanPredictor {
 public:
  /// `rays` outlives the predictor. May throw std::bad_alloc.
  ScanPredictor(const SensorRays& rays, const Pose& pose) : pose_(pose), cast_(rays) {}

  /// O(points). The order of frames does not matter.
  void add(const SeenFrame& frame);
  /// May throw std::bad_alloc.
  Vector<codec::lidar::PredictedPoint> seen() const { return cast_.seen(); }

 private:
  Pose pose_;
  RayCast cast_;
};

}  // namespace quern::lidar
