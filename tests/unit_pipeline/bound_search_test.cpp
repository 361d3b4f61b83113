// The search for a place where a falling function meets a target: how many looks it takes, and that it ends.
#include "libcompress/pipeline/search/bound_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace quern::testing {
namespace {

struct Found {
  int looks = 0;
  double surplus = std::numeric_limits<double>::infinity();  // the least that meets the target
};

Found search(const BoundSearch::Request& request, const std::function<double(double)>& surplus_at) {
  BoundSearch search(request);
  Found found;
  while (const auto place = search.next()) {
    EXPECT_GE(*place, request.lowest);
    EXPECT_LE(*place, request.highest);
    const double surplus = surplus_at(*place);
    if (surplus >= 0) found.surplus = std::min(found.surplus, surplus);
    search.add(*place, surplus);
    EXPECT_LE(++found.looks, request.steps);
  }
  return found;
}

BoundSearch::Request request_from(double start) { return {start, -60, 0, 6.02, 0.05, 16}; }

TEST(BoundSearch, StraightLine_TakesTwoLooksAndOneForEveryEightOctaves) {
  for (const double start : {-20.0, -9.0, -3.0, 0.0}) {
    const Found found = search(request_from(start), [](double x) { return -60 - 6.02 * (x - 1); });
    EXPECT_LE(found.looks, 3 + std::abs(start + 9) / 8) << start;
    EXPECT_LE(found.surplus, 0.05);
  }
}

TEST(BoundSearch, BentLine_TakesFew) {
  // PSNR as it is at low rates: flatter and flatter.
  const auto curve = [](double x) { return 30 - 6.02 * (x + 6) + 4 * std::exp2((x + 4) / 2) - 45; };
  for (const double start : {-30.0, -10.0, -1.0}) {
    const Found found = search(request_from(start), curve);
    EXPECT_LE(found.looks, 7) << start;
    EXPECT_LE(found.surplus, 0.05) << start;
  }
}

TEST(BoundSearch, SlopeFarFromTheOneTold_IsFound) {
  BoundSearch::Request request = request_from(-30);
  for (const double told : {100.0, 0.05}) {
    request.slope = told;
    const Found found = search(request, [](double x) { return -1.5 * (x + 1); });
    EXPECT_LE(found.looks, 12) << told;
    EXPECT_LE(found.surplus, 0.05) << told;
  }
}

TEST(BoundSearch, Jump_EndsBesideIt) {
  const Found found = search(request_from(-5), [](double x) { return x < -7.3 ? 11.0 : -2.0; });
  EXPECT_EQ(found.surplus, 11);
  EXPECT_LE(found.looks, 16);
}

TEST(BoundSearch, TargetMetEverywhere_EndsAtTheTop) {
  const Found found = search(request_from(-30), [](double x) { return 5 - x; });
  EXPECT_EQ(found.surplus, 5);
}

TEST(BoundSearch, TargetMissedEverywhere_EndsAtTheBottom) {
  int looks_at_bottom = 0;
  const Found found = search(request_from(-30), [&](double x) {
    looks_at_bottom += x == -60 ? 1 : 0;
    return -500.0;
  });
  EXPECT_EQ(looks_at_bottom, 1);
  EXPECT_FALSE(std::isfinite(found.surplus));
}

TEST(BoundSearch, ExactOutcomes_AreSurpassed) {
  const Found found = search(
      request_from(-40), [](double x) { return x < -20 ? std::numeric_limits<double>::infinity() : -(x + 10) * 6; });
  EXPECT_LE(found.surplus, 0.05);
}

}  // namespace
}  // namespace quern::testing
