// MUSCL reconstruction: from cell averages to the two states at a face, with the monotonized-central limiter
// (van Leer, J. Comput. Phys. 23 (1977) 276). Branch-free, so that a loop over faces becomes vector code.
#pragma once

#include <algorithm>
#include <cmath>

namespace quern::flow {

/// Limited difference across a cell, from the differences to its two neighbours. Zero at an extremum; otherwise at most
/// twice either difference, so that a face value never leaves the interval of its neighbours and stays positive.
inline double limited_slope(double left, double right) {
  const double bound = 2.0 * std::min(std::abs(left), std::abs(right));
  const double slope = std::min(bound, 0.5 * std::abs(left + right));
  return left * right > 0.0 ? std::copysign(slope, left) : 0.0;
}

/// What a scalar is on either side of a face.
struct FaceValues {
  double left;
  double right;
};

/// `value` points at the cell to the right of the face; `stride` leads to the next cell along the axis.
inline FaceValues reconstruct(const double* value, std::size_t stride) {
  const double far_left = *(value - 2 * stride);
  const double left = *(value - stride);
  const double right = *value;
  const double far_right = *(value + stride);
  const double middle = right - left;
  return {left + 0.5 * limited_slope(left - far_left, middle), right - 0.5 * limited_slope(middle, far_right - right)};
}

}  // namespace quern::flow
