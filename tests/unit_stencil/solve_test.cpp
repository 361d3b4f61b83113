// Small least-squares systems.
#include <gtest/gtest.h>

#include "codecs/stencil/least_squares/solve.h"

namespace quern::codec::stencil {
namespace {

/// Sums of one sample after another; the last column is the target.
template <std::size_t N>
SquareSums sums_of(const std::vector<std::array<double, N>>& samples) {
  SquareSums sums;
  sums.clear(N);
  for (const auto& s : samples)
    for (std::size_t k = 0; k < N; ++k)
      for (std::size_t l = 0; l <= k; ++l) sums.at(k, l) += s[k] * s[l];
  return sums;
}

TEST(Stencil_Solve, FindsTheWeightsThatMadeTheTargets) {
  std::vector<std::array<double, 3>> samples;
  for (int i = 0; i < 20; ++i) samples.push_back({1.0 * i, i % 3 - 1.0, 0.75 * i - 2.5 * (i % 3 - 1.0)});
  double solution[2] = {0, 0};
  ASSERT_TRUE(solve_symmetric(sums_of(samples), 2, solution));
  EXPECT_NEAR(solution[0], 0.75, 1e-8);
  EXPECT_NEAR(solution[1], -2.5, 1e-8);
}

TEST(Stencil_Solve, OfNothing_FailsAndTouchesNothing) {
  double solution[2] = {7, 7};
  SquareSums sums;
  sums.clear(3);
  sums.at(0, 0) = -1;
  EXPECT_FALSE(solve_symmetric(sums, 2, solution));
  EXPECT_EQ(solution[0], 7);
}

TEST(Stencil_SolveNonNegative, LeavesOutWhatWouldBeNegative) {
  std::vector<std::array<double, 3>> samples;
  for (int i = 1; i < 20; ++i) samples.push_back({1.0 * i, 1.0 + i % 4, 2.0 * i - 0.5 * (1.0 + i % 4)});
  double solution[2] = {0, 0};
  ASSERT_TRUE(solve_non_negative(sums_of(samples), 2, solution));
  EXPECT_GT(solution[0], 1.5);
  EXPECT_EQ(solution[1], 0);
}

}  // namespace
}  // namespace quern::codec::stencil
