// Small symmetric systems from least squares, solved in scalar binary64 in a fixed order.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/stencil/taps.h"

namespace quern::codec::stencil {

/// Lower triangle of sums of products; row k holds columns 0..k. The last row belongs to the target.
class SquareSums {
 public:
  static constexpr std::size_t kMost = kernels::kMaxTaps + 1;

  void clear(std::size_t width) {
    width_ = width;
    std::fill_n(sums_.begin(), width * width, 0.0);
  }
  double* data() { return sums_.data(); }
  double& at(std::size_t k, std::size_t l) { return sums_[k * width_ + l]; }
  double at(std::size_t k, std::size_t l) const { return sums_[k * width_ + l]; }

 private:
  std::size_t width_ = 0;
  std::array<double, kMost * kMost> sums_{};
};

/// Solves for the first `unknowns` rows against the row after them. False, with the solution untouched, when the
/// system is not positive definite.
bool solve_symmetric(const SquareSums& sums, std::size_t unknowns, double* solution);

/// The same with every unknown at least 0: unknowns that come out negative are fixed at 0, worst first.
bool solve_non_negative(const SquareSums& sums, std::size_t unknowns, double* solution);

}  // namespace quern::codec::stencil
