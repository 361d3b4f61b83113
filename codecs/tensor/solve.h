// Least squares of a few unknowns: the normal equations, solved in a fixed order of separately rounded operations.
#pragma once

#include <array>
#include <cstddef>

namespace quern::codec::tensor {

/// Solves a symmetric positive system, the right side in column N, by Gaussian elimination. An unknown that those
/// before it explain, or that has no data, is 0.
template <std::size_t N>
std::array<double, N> solve_symmetric(std::array<std::array<double, N + 1>, N> a) {
  constexpr double kLeastPivot = 1e-9;  // of the diagonal
  std::array<double, N> diagonal{};
  for (std::size_t k = 0; k < N; ++k) diagonal[k] = a[k][k];
  std::array<bool, N> used{};
  for (std::size_t k = 0; k < N; ++k) {
    used[k] = a[k][k] > kLeastPivot * diagonal[k] && diagonal[k] > 0;
    if (!used[k]) continue;
    for (std::size_t r = 0; r < N; ++r) {
      if (r == k) continue;
      const double factor = a[r][k] / a[k][k];
      for (std::size_t c = 0; c <= N; ++c) a[r][c] = a[r][c] - factor * a[k][c];
    }
  }
  std::array<double, N> x{};
  for (std::size_t k = 0; k < N; ++k)
    if (used[k]) x[k] = a[k][N] / a[k][k];
  return x;
}

}  // namespace quern::codec::tensor
