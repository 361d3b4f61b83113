#include "lidar/predict/scan_predictor.h"

#include <bit>
#include <cmath>

namespace quern::lidar {

Vector<UnitPoint> unit_points(std::span<const std::uint32_t> words) {
  Vector<UnitPoint> points;
  points.reserve(words.size() / 3);
  for (std::size_t i = 0; i + 2 < words.size(); i += 3) {
    UnitPoint point{};
    bool near = true;
    for (unsigned axis = 0; axis < 3; ++axis) {
      // The product of a binary32 number and an integer below 2^29 is exact in binary64.
      const double units = double{std::bit_cast<float>(words[i + axis])} * codec::lidar::kUnitsPerMetre;
      near = near && std::fabs(units) < double{Move::kMostUnits};
      if (near) point[axis] = static_cast<std::int64_t>(std::floor(units + 0.5));
    }
    if (near) points.push_back(point);
  }
  return points;
}

void ScanPredictor::add(const SeenFrame& frame) {
  const Move move(frame.pose, pose_);
  for (const UnitPoint& point : frame.points) {
    const auto moved = move(point);
    if (!moved) continue;
    cast_.add(*moved);
    if (knows_) known_.push_back({*moved, 0});
  }
}

void ScanPredictor::add_cells(const SeenFrame& tile, std::uint32_t cell_units) {
  const Move move(tile.pose, pose_);
  const std::int64_t side = known_side(cell_units);
  UnitPoint last{-1, -1, -1};
  for (const UnitPoint& point : tile.points) {
    if (const auto moved = move(point)) cast_.add(*moved);
    if (!knows_) continue;
    // Keys rise, so the cells of a cube follow each other.
    const UnitPoint cube{point[0] / side, point[1] / side, point[2] / side};
    if (cube == last) continue;
    last = cube;
    const auto centre = move({cube[0] * side + side / 2, cube[1] * side + side / 2, cube[2] * side + side / 2});
    if (centre) known_.push_back({*centre, 0});
  }
}

Vector<codec::lidar::PredictedPoint> ScanPredictor::seen() const {
  auto points = cast_.seen();
  points.insert(points.end(), known_.begin(), known_.end());
  return points;
}

}  // namespace quern::lidar
