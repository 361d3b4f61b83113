// Points moved from the coordinates of one pose into those of another, in whole numbers.
#pragma once

#include <cstdint>

#include "kernels/lidar/near_grid.h"

namespace quern::kernels {

struct RigidMove {
  static constexpr unsigned kMatrixBits = 20;
  static constexpr std::int64_t kMostUnits = INT64_C(1) << 21;  ///< 209.7 m

  std::int64_t from[3][3] = {};  ///< rotations, in units of 2^-20
  std::int64_t to[3][3] = {};
  std::int64_t shift[3] = {};  ///< between the poses' places

  /// False where the point, or where it comes to lie, is beyond kMostUnits.
  constexpr bool operator()(const GridPoint& point, GridPoint& moved) const {
    constexpr std::int64_t kHalf = INT64_C(1) << (kMatrixBits - 1);
    for (unsigned axis = 0; axis < 3; ++axis)
      if (point[axis] < -kMostUnits || point[axis] > kMostUnits) return false;
    std::int64_t turned[3] = {};
    for (unsigned row = 0; row < 3; ++row) {
      std::int64_t sum = kHalf;
      for (unsigned axis = 0; axis < 3; ++axis) sum += from[row][axis] * point[axis];
      turned[row] = (sum >> kMatrixBits) + shift[row];
      // A turn makes no coordinate more than twice as large.
      if (turned[row] < -4 * kMostUnits || turned[row] > 4 * kMostUnits) return false;
    }
    for (unsigned axis = 0; axis < 3; ++axis) {
      std::int64_t sum = kHalf;
      for (unsigned row = 0; row < 3; ++row) sum += to[row][axis] * turned[row];
      moved[axis] = sum >> kMatrixBits;
      if (moved[axis] < -kMostUnits || moved[axis] > kMostUnits) return false;
    }
    return true;
  }
};

}  // namespace quern::kernels
