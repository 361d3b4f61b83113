// A spinning LiDAR on a vehicle: when, where and in which direction it measures, and what it makes of the answer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "datasets/lidar/street.h"

namespace quern::drives {

enum class SensorKind : std::uint8_t { hdl64, vlp16 };

/// From the vehicle's sensor to the world: rows of a 3 x 4 matrix, metres.
using PoseRows = std::array<double, 12>;

struct ScanPoint {
  float x, y, z, intensity;
};

/// Where the vehicle is during a pass: it keeps its lane, more or less, and its speed changes slowly.
class Drive {
 public:
  /// Starts `start` metres along the road.
  Drive(const Street& street, double start);
  /// Of the sensor at a time in seconds.
  PoseRows pose(double seconds) const;

 private:
  const Street& street_;
  double start_;
  double speed_;
  double lane_;
  double sway_;
};

/// One turn, 0.1 s, whose middle looks ahead. Points in the sensor's coordinates, ring after ring from the highest,
/// each beginning at the x axis and turning to the left: as KITTI files them. Moves what moves in the street.
std::vector<ScanPoint> scan(SensorKind kind, Street& street, const Drive& drive, unsigned frame);

/// The time of the middle of a frame's turn.
double time_of(unsigned frame);

}  // namespace quern::drives
