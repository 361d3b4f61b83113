// The check itself: it sees one point beyond the bound, in either direction, and distances are those of brute force.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "lidar/verify/near_tree.h"
#include "lidar/verify/promise.h"
#include "tests/unit_lidar/clouds.h"
#include "tests/unit_lidar_drive/made_clouds.h"

namespace quern::lidar {
namespace {

using namespace quern::lidar_test;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

PointCloud moved(PointCloud cloud, std::uint64_t point, float by) {
  auto& word = cloud.words[static_cast<std::size_t>(3 * point)];
  word = bits(std::bit_cast<float>(word) + by);
  return cloud;
}

PromiseCheck check(const PointCloud& a, const PointCloud& b, Promise promise) {
  SerialRunner runner;
  auto out = check_promise(a, b, promise, runner);
  EXPECT_TRUE(out.ok());
  return *out;
}

TEST(Promise_OnePointBeyond_IsSeen, BothDirections) {
  PointCloud far = small_scan(500, 1);
  // A point of its own, 50 m above all others.
  for (const float x : {0.0F, 0.0F, 50.0F}) far.words.push_back(bits(x));
  for (auto& column : far.columns) column.values.resize(column.values.size() + 4);
  const PointCloud near = moved(far, far.points() - 1, 0.0625F);
  const Promise kept{PromiseKind::set, 0.0626, 626};
  const Promise broken{PromiseKind::set, 0.0624, 624};
  EXPECT_EQ(check(far, near, kept).violations, 0U);
  EXPECT_EQ(check(far, near, broken).violations, 2U);
  EXPECT_EQ(check(far, near, {PromiseKind::points, 0.0626, 626}).violations, 0U);
  EXPECT_EQ(check(far, near, {PromiseKind::points, 0.0624, 624}).violations, 1U);
  EXPECT_EQ(check(far, near, {PromiseKind::exact, 0, 0}).violations, 1U);
  EXPECT_NEAR(check(far, near, {PromiseKind::points, 0.0626, 626}).max_pair_distance, 0.0625, 1e-12);
  EXPECT_EQ(check(as_scaled(far, 0.01), as_scaled(near, 0.01), {PromiseKind::set, 0.05, 5}).violations, 2U);
  EXPECT_EQ(check(as_f64(far), as_f64(near), {PromiseKind::set, 0.06, 600}).violations, 2U);
}

TEST(Promise_MissingPoints_AreSeen, EmptyAndFewer) {
  const PointCloud scan = small_scan(100, 2);
  PointCloud empty;
  EXPECT_EQ(check(scan, empty, {PromiseKind::set, 1000, 10'000'000}).violations, scan.points());
  EXPECT_EQ(check(empty, scan, {PromiseKind::set, 1000, 10'000'000}).violations, scan.points());
  EXPECT_TRUE(check(empty, empty, {PromiseKind::set, 0.1, 1000}).passed());
  PointCloud fewer = scan;
  fewer.words.resize(fewer.words.size() - 3);
  EXPECT_FALSE(check(scan, fewer, {PromiseKind::points, 1, 10000}).passed());
}

TEST(Promise_ChangedAttributes_AreSeen, OneElement) {
  const PointCloud scan = small_scan(100, 3);
  PointCloud other = scan;
  other.columns[1].values[8] ^= 1;
  EXPECT_EQ(check(scan, other, {PromiseKind::points, 1, 10000}).attribute_changes, 1U);
  EXPECT_FALSE(check(scan, other, {PromiseKind::exact, 0, 0}).passed());
}

TEST(Promise_NonFinitePoints_AreLeftOutOfSetsAndKeptElsewhere, NanWithPayload) {
  PointCloud scan = small_scan(100, 4);
  scan.words[0] = 0x7FC00123;
  PointCloud other = scan;
  EXPECT_TRUE(check(scan, other, {PromiseKind::points, 0.1, 1000}).passed());
  other.words[0] = 0x7FC00124;
  EXPECT_EQ(check(scan, other, {PromiseKind::points, 0.1, 1000}).violations, 1U);
  EXPECT_TRUE(check(scan, other, {PromiseKind::set, 0.1, 1000}).passed());
}

TEST(NearTree_RandomPoints_FindsWhatBruteForceFinds, AllQueries) {
  Random random(5);
  const auto place = [&] { return Position{random.signed_unit(), random.signed_unit(), random.signed_unit() * 0.1}; };
  Vector<Position> points;
  for (int i = 0; i < 700; ++i) points.push_back(i % 3 == 0 && i > 0 ? points.back() : place());
  const NearTree tree(points);
  for (int i = 0; i < 300; ++i) {
    const Position query = place();
    double best = std::numeric_limits<double>::infinity();
    for (const Position& p : points) {
      double sum = 0;
      for (std::size_t axis = 0; axis < 3; ++axis) sum += (p[axis] - query[axis]) * (p[axis] - query[axis]);
      best = std::min(best, sum);
    }
    EXPECT_EQ(tree.nearest_square(query), best);
  }
  EXPECT_TRUE(std::isinf(NearTree({}).nearest_square({0, 0, 0})));
}

TEST(Distances_MillionPointsAtOnePlace_EndSoon, TwoPlaces) {
  PointCloud a;
  a.words.assign(3'000'000, bits(1.0F));
  PointCloud b;
  b.words.assign(3'000'000, bits(1.5F));
  SerialRunner runner;
  const auto found = measure_distances(a, b, runner);
  ASSERT_TRUE(found.ok());
  EXPECT_NEAR(found->forward.max, std::sqrt(0.75), 1e-12);
  EXPECT_EQ(check(a, b, {PromiseKind::set, 0.5, 5000}).violations, 2'000'000U);
}

}  // namespace
}  // namespace quern::lidar
