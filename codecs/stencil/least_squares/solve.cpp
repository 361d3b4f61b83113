// Cholesky factorisation with a small relative ridge.
#include "codecs/stencil/least_squares/solve.h"

#include <algorithm>
#include <cmath>

namespace quern::codec::stencil {
namespace {

constexpr double kRidge = 1e-11;

/// Solves for the unknowns listed in `active`; the target is row `target`.
bool solve_active(const SquareSums& sums, const std::size_t* active, std::size_t count, std::size_t target,
                  double* solution) {
  constexpr std::size_t kMost = SquareSums::kMost;
  std::array<double, kMost * kMost>
      factor;  // NOLINT(cppcoreguidelines-pro-type-member-init): the triangle is set below
  std::array<double, kMost> y{};
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double s = sums.at(active[i], active[j]);
      if (i == j) s += s * kRidge + 1e-300;
      for (std::size_t k = 0; k < j; ++k) s -= factor[i * kMost + k] * factor[j * kMost + k];
      if (i == j) {
        if (!(s > 0) || !(s < 1e300)) return false;
        factor[i * kMost + i] = std::sqrt(s);
      } else {
        factor[i * kMost + j] = s / factor[j * kMost + j];
      }
    }
    double s = sums.at(target, active[i]);
    for (std::size_t k = 0; k < i; ++k) s -= factor[i * kMost + k] * y[k];
    y[i] = s / factor[i * kMost + i];
  }
  for (std::size_t i = count; i-- > 0;) {
    double s = y[i];
    for (std::size_t k = i + 1; k < count; ++k) s -= factor[k * kMost + i] * solution[k];
    solution[i] = s / factor[i * kMost + i];
    if (!(solution[i] - solution[i] == 0)) return false;
  }
  return true;
}

}  // namespace

bool solve_symmetric(const SquareSums& sums, std::size_t unknowns, double* solution) {
  std::array<std::size_t, SquareSums::kMost> active{};
  for (std::size_t i = 0; i < unknowns; ++i) active[i] = i;
  std::array<double, SquareSums::kMost> found{};
  if (!solve_active(sums, active.data(), unknowns, unknowns, found.data())) return false;
  std::copy_n(found.begin(), unknowns, solution);
  return true;
}

bool solve_non_negative(const SquareSums& sums, std::size_t unknowns, double* solution) {
  std::array<std::size_t, SquareSums::kMost> active{};
  std::array<double, SquareSums::kMost> found{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < unknowns; ++i)
    if (sums.at(i, i) > 0) active[count++] = i;
  while (count > 0) {
    if (!solve_active(sums, active.data(), count, unknowns, found.data())) return false;
    std::size_t worst = count;
    for (std::size_t i = 0; i < count; ++i)
      if (found[i] < 0 && (worst == count || found[i] < found[worst])) worst = i;
    if (worst == count) break;
    for (std::size_t i = worst; i + 1 < count; ++i) active[i] = active[i + 1];
    --count;
  }
  std::fill_n(solution, unknowns, 0.0);
  for (std::size_t i = 0; i < count; ++i) solution[active[i]] = found[i];
  return true;
}

}  // namespace quern::codec::stencil
