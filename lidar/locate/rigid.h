// Rigid motions in binary64, for the search of a pose: metres, sensor to world. Only sums, products, quotients and
// square roots, so that every machine finds the same pose.
#pragma once

#include <array>
#include <optional>

#include "lidar/predict/pose.h"

namespace quern::lidar {

using Spot = std::array<double, 3>;  ///< metres

struct Rigid {
  std::array<double, 4> turn{1, 0, 0, 0};  ///< unit quaternion w, x, y, z
  Spot at{};

  Spot rotated(const Spot& point) const;
  Spot operator()(const Spot& point) const;
  /// The motion that comes before this one's: (*this)(other(point)).
  Rigid after(const Rigid& other) const;
  Rigid inverse() const;
  /// Turned about `centre` by a small rotation vector and moved, in the world.
  Rigid nudged(const std::array<double, 6>& step, const Spot& centre) const;
};

/// `origin`: of the world of the motion, in units of 0.1 mm; numbers near it keep their precision.
Rigid rigid_of(const Pose& pose, const std::array<std::int64_t, 3>& origin);
/// Rounded to the numbers of poses; nothing beyond their limits. What comes of its own matrix is the same pose.
std::optional<Pose> pose_of(const Rigid& rigid, const std::array<std::int64_t, 3>& origin);

/// Rows of the 3 x 4 matrix of a pose, in metres.
std::array<double, 12> matrix_of(const Pose& pose);

}  // namespace quern::lidar
