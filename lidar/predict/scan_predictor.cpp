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
  for (const UnitPoint& point : frame.points)
    if (const auto moved = move(point)) cast_.add(*moved);
}

}  // namespace quern::lidar
