// Where a sensor stood, in whole numbers: what moves points between scans is the same on every machine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "codecs/lidar/point_codec.h"
#include "kernels/lidar/rigid_move.h"

namespace quern::lidar {

using UnitPoint = kernels::GridPoint;  ///< units of 0.1 mm

/// From the sensor's coordinates to those of its surroundings. Any four numbers within the limit but four zeros are a
/// rotation: a quaternion w, x, y, z that needs no unit length.
struct Pose {
  static constexpr std::int64_t kMostQuaternion = INT64_C(1) << 20;
  static constexpr std::int64_t kMostTranslation = INT64_C(1) << 40;

  std::array<std::int64_t, 4> quaternion{kMostQuaternion, 0, 0, 0};
  std::array<std::int64_t, 3> translation{};  ///< units of 0.1 mm

  bool operator==(const Pose&) const = default;
};

/// Whether all numbers lie within their limits and the quaternion is not zero.
bool is_pose(const Pose& pose);

/// From the rows of a 3 x 4 matrix, rotation and translation in metres. Nothing where the matrix is not rigid (a product
/// of two of its axes off by more than 10^-3, or a reflection) or lies beyond the limits.
std::optional<Pose> pose_of_matrix(const std::array<double, 12>& rows);

/// Moves points from the coordinates of one pose into those of another. Both are poses.
class Move {
 public:
  Move(const Pose& from, const Pose& to);
  /// Nothing beyond kMostUnits, of the point or of where it comes to lie.
  std::optional<UnitPoint> operator()(const UnitPoint& point) const;

  static constexpr std::int64_t kMostUnits = kernels::RigidMove::kMostUnits;  ///< 209.7 m

 private:
  kernels::RigidMove move_;
};

}  // namespace quern::lidar
