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
  /// `rays` outlives the predictor. With `knows` the prediction has known points, too. May throw std::bad_alloc.
  ScanPredictor(const SensorRays& rays, const Pose& pose, bool knows) : pose_(pose), knows_(knows), cast_(rays) {}

  /// O(points); each is a known point. May throw std::bad_alloc.
  void add(const SeenFrame& frame);
  /// Centres of the cells of a tile, in the order of keys; of those in a cube of side known_side() one is known.
  /// May throw std::bad_alloc.
  void add_cells(const SeenFrame& tile, std::uint32_t cell_units);
  std::size_t known_points() const { return known_.size(); }
  /// What rays meet, ring after ring, and behind it the known points, as they were added. The order of frames and tiles
  /// matters to the latter alone. May throw std::bad_alloc.
  Vector<codec::lidar::PredictedPoint> seen() const;

 private:
  Pose pose_;
  bool knows_;
  RayCast cast_;
  Vector<codec::lidar::PredictedPoint> known_;
};

/// The least side above or at 8 cm that is that of a cell times a power of two.
constexpr std::int64_t known_side(std::uint32_t cell_units) {
  std::int64_t side = cell_units;
  while (side < 800) side *= 2;
  return side;
}

}  // namespace quern::lidar
