// The schedule of rounds against a plain loop, for every order of costs.
#include "codecs/stencil/levels/plane_rounds.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace quern::codec::stencil {
namespace {

using Predictors = std::array<Predictor, 2 * kParityClasses>;

/// "f": fitted (and marked with the number of the round), "c": coded, "b": coded again with the best of the rounds.
std::string plain_loop(const std::vector<std::uint64_t>& costs, int& best) {
  std::string steps;
  std::uint64_t least = UINT64_MAX;
  for (std::size_t round = 0; round < costs.size(); ++round) {
    steps += "fc";
    if (costs[round] < least) {
      least = costs[round];
      best = static_cast<int>(round);
    } else {
      steps += "b";
    }
  }
  return steps;
}

std::string schedule(const std::vector<std::uint64_t>& costs, Predictors& own) {
  std::string steps;
  PlaneRounds rounds(costs.size());
  std::size_t round = 0;
  for (auto next = PlaneRounds::Next::fit; next != PlaneRounds::Next::end;) {
    if (next == PlaneRounds::Next::fit) {
      for (Predictor& p : own) p.kind = static_cast<std::uint8_t>(round);
      steps += 'f';
    }
    steps += next == PlaneRounds::Next::fit ? 'c' : 'b';
    const bool last = rounds.last();
    int asked = 0;
    const auto cost = [&] {
      ++asked;
      return costs[round];
    };
    const bool again = next == PlaneRounds::Next::code_again;
    next = rounds.coded(cost, own.data());
    EXPECT_EQ(asked, again ? 0 : 1);
    if (next != PlaneRounds::Next::code_again) {
      EXPECT_EQ(last, next == PlaneRounds::Next::end);
    }
    if (next != PlaneRounds::Next::code_again) ++round;
  }
  return steps;
}

TEST(Stencil_PlaneRounds, AnyCosts_FollowThePlainLoop) {
  for (std::size_t count = 1; count <= 4; ++count) {
    std::size_t cases = 1;
    for (std::size_t i = 0; i < count; ++i) cases *= 3;
    for (std::size_t n = 0; n < cases; ++n) {
      std::vector<std::uint64_t> costs;
      for (std::size_t rest = n; costs.size() < count; rest /= 3) costs.push_back(100 + rest % 3);
      int best = 0;
      const std::string expected = plain_loop(costs, best);
      Predictors own{};
      EXPECT_EQ(schedule(costs, own), expected) << n;
      for (const Predictor& p : own) EXPECT_EQ(p.kind, best) << n;
    }
  }
}

}  // namespace
}  // namespace quern::codec::stencil
