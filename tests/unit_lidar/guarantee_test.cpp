// The guarantee: every point has a decoded one within the bound, every decoded one has a point within it, by a checker
// that shares nothing with the codec.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "codecs/lidar/point_codec.h"
#include "libcompress/core/task_runner.h"
#include "lidar/verify/exact_check.h"
#include "tests/support/thorough.h"
#include "tests/unit_lidar/clouds.h"

namespace quern::codec::lidar {
namespace {

using namespace quern::lidar_test;
using namespace quern::lidar::exact;

constexpr std::uint64_t kNoLimit = UINT64_C(1) << 28;

CloudView view_of(const TestCloud& cloud, std::span<const ColumnView> columns) {
  return {cloud.type, cloud.words, columns};
}

bool same(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

std::uint64_t finite_points(const TestCloud& cloud) { return exact_points(cloud.words, cloud.is_integer()).size(); }

/// Encodes, decodes and checks all that a mode promises.
void check(const TestCloud& cloud, const ScanOptions& options, Prediction prediction = {}) {
  SCOPED_TRACE(cloud.name + ", mode " + std::to_string(static_cast<int>(options.mode)) + ", " +
               std::to_string(options.max_error) + " units");
  const ColumnView column{1, cloud.intensity};
  SerialRunner runner;
  const auto bytes = encode_scan(view_of(cloud, {&column, 1}), options, runner, prediction);
  ASSERT_TRUE(bytes.ok()) << bytes.status().text();
  const auto decoded = decode_scan(*bytes, kNoLimit, runner, prediction);
  ASSERT_TRUE(decoded.ok()) << decoded.status().text();
  const auto info = scan_info(*bytes);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->points, decoded->points());
  EXPECT_EQ(info->source_points, cloud.points());
  EXPECT_LE(info->achieved_error, options.max_error);
  EXPECT_LE(bytes->size(), 13 * cloud.points() + 13 * cloud.points() / 1000 + 256);
  const Bound bound{options.max_error, cloud.is_integer() ? 1U : kUnitsPerMetre};
  ASSERT_EQ(decoded->columns.size(), 1U);
  if (options.mode == Mode::set) {
    const auto source = exact_points(cloud.words, cloud.is_integer());
    const auto back = exact_points(decoded->words, cloud.is_integer());
    EXPECT_EQ(violations(source, back, bound), 0U);
    EXPECT_EQ(violations(back, source, bound), 0U);
    EXPECT_EQ(info->dropped_points, options.keep_non_finite ? 0 : cloud.points() - finite_points(cloud));
    return;
  }
  EXPECT_TRUE(std::equal(cloud.intensity.begin(), cloud.intensity.end(), decoded->columns[0].values.begin(),
                         decoded->columns[0].values.end()));
  if (options.mode == Mode::exact) {
    EXPECT_TRUE(same(decoded->words, cloud.words));
  } else {
    EXPECT_EQ(pair_violations(cloud.words, decoded->words, cloud.is_integer(), bound), 0U);
  }
}

constexpr std::uint32_t kBounds[] = {1, 10, 100, 200, 500, 1000, 1500, 2600, 1U << 20};
constexpr Mode kModes[] = {Mode::set, Mode::points, Mode::exact};

TEST(Guarantee_AdversarialClouds, HoldsInEveryModeAndBound) {
  for (const TestCloud& cloud : adversarial_clouds())
    for (const Mode mode : kModes)
      for (const std::uint32_t bound : kBounds) check(cloud, {mode, bound});
}

TEST(Guarantee_RandomClouds, HoldsInEveryModeAndBound) {
  const char* const named = std::getenv("QUERN_LIDAR_SEED");
  const std::uint64_t seed = named != nullptr ? std::strtoull(named, nullptr, 10) : 20261127;
  const std::uint64_t clouds = testing::thorough() ? 10000 : 600;
  for (std::uint64_t i = 0; i < clouds && !HasFailure(); ++i) {
    const Mode mode = kModes[i % 3];
    check(random_cloud(seed + i), {mode, kBounds[i / 3 % std::size(kBounds)]});
  }
  RecordProperty("seed", std::to_string(seed));
}

/// Predictions that help, that are wrong, and that are meant to break something.
std::vector<std::vector<PredictedPoint>> predictions_of(const TestCloud& cloud) {
  constexpr std::int64_t kMost = kMostPredictedUnits;
  Random random(11);
  std::vector<PredictedPoint> wrong(2000), far(2000);
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      wrong[i].at[axis] = static_cast<std::int64_t>(random.below(400000)) - 200000;
      far[i].at[axis] = random.below(2) == 0 ? kMost : -kMost;
    }
  }
  const std::vector<PredictedPoint> crowd(5000, {{1, 2, 3}, kMostPredictedWeight});
  return {near_prediction(cloud, 3, 500), {}, wrong, far, crowd, {{{0, 0, 0}}}};
}

TEST(Guarantee_Predictions, HoldWhateverIsPredicted) {
  std::vector<TestCloud> clouds = adversarial_clouds();
  clouds.push_back(spinning_scan(16, 200, 9, false));
  for (const TestCloud& cloud : clouds)
    for (const auto& prediction : predictions_of(clouds.back()))
      for (const Mode mode : {Mode::set, Mode::points}) check(cloud, {mode, 500}, prediction);
}

TEST(Prediction_OfAScan, HelpsOrCostsNextToNothing) {
  const TestCloud cloud = spinning_scan(24, 500, 9, false);
  SerialRunner runner;
  const ScanOptions options{Mode::set, 3000};
  const auto alone = encode_scan(view_of(cloud, {}), options, runner);
  ASSERT_TRUE(alone.ok());
  for (const auto& prediction : predictions_of(cloud)) {
    const auto bytes = encode_scan(view_of(cloud, {}), options, runner, prediction);
    ASSERT_TRUE(bytes.ok());
    EXPECT_LE(bytes->size(), alone->size() + alone->size() / 100 + 16);
  }
  const auto helped = encode_scan(view_of(cloud, {}), options, runner, near_prediction(cloud, 3, 500));
  ASSERT_TRUE(helped.ok());
  EXPECT_LT(helped->size(), alone->size() * 4 / 5);
  EXPECT_TRUE(scan_info(*helped)->predicted);
  EXPECT_FALSE(scan_info(*alone)->predicted);
}

TEST(Prediction_OfAnotherScan, IsRefused) {
  const TestCloud cloud = spinning_scan(24, 500, 9, false);
  SerialRunner runner;
  auto prediction = near_prediction(cloud, 3, 500);
  const auto bytes = encode_scan(view_of(cloud, {}), {Mode::set, 3000}, runner, prediction);
  ASSERT_TRUE(bytes.ok() && scan_info(*bytes)->predicted);
  EXPECT_EQ(decode_scan(*bytes, kNoLimit, runner).status().code(), StatusCode::invalid_argument);
  ++prediction.back().at[2];
  EXPECT_EQ(decode_scan(*bytes, kNoLimit, runner, prediction).status().code(), StatusCode::invalid_argument);
  --prediction.back().at[2];
  prediction.back().weight ^= 1U;
  EXPECT_EQ(decode_scan(*bytes, kNoLimit, runner, prediction).status().code(), StatusCode::invalid_argument);
  prediction.back().weight = kMostPredictedWeight + 1;
  EXPECT_EQ(encode_scan(view_of(cloud, {}), {Mode::set, 3000}, runner, prediction).status().code(),
            StatusCode::invalid_argument);
  prediction.back().weight = 0;
  EXPECT_EQ(decode_scan(*bytes, kNoLimit, runner, prediction).status().code(), StatusCode::invalid_argument);
  prediction.back() = {{0, 0, INT64_MAX}};
  EXPECT_EQ(decode_scan(*bytes, kNoLimit, runner, prediction).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(encode_scan(view_of(cloud, {}), {Mode::set, 3000}, runner, prediction).status().code(),
            StatusCode::invalid_argument);
}

TEST(Guarantee_SpinningScan, HoldsInEveryModeAndBound) {
  const TestCloud cloud = spinning_scan(32, 900, 1, false);
  for (const std::uint32_t bound : {1U, 10U, 100U, 200U, 500U, 1500U}) {
    check(cloud, {Mode::set, bound});
    check(cloud, {Mode::points, bound});
  }
  check(cloud, {Mode::exact, 1});
}

/// A frame of floats, the first three of each record coordinates; empty where there is none.
TestCloud frame(const std::string& name, std::size_t floats) {
  TestCloud cloud;
  cloud.name = name;
  const char* const folder = std::getenv("QUERN_TEST_DATA");
  std::ifstream in(std::string(folder != nullptr ? folder : "") + "/lidar/" + name, std::ios::binary);
  std::vector<float> record(floats);
  while (in.read(reinterpret_cast<char*>(record.data()), static_cast<std::streamsize>(4 * floats)))
    cloud.add(record[0], record[1], record[2]);
  return cloud;
}

TEST(Guarantee_RealFrames, HoldsInEveryMode) {
  const TestCloud kitti = frame("kitti_odometry_00/000000.bin", 4);
  const TestCloud nuscenes = frame("nuscenes_lidar_top_34688x5.f32", 5);
  if (kitti.points() == 0 || nuscenes.points() == 0) GTEST_SKIP() << "no frames below QUERN_TEST_DATA/lidar";
  for (const std::uint32_t bound : {200U, 1500U}) {
    check(nuscenes, {Mode::set, bound});
    check(nuscenes, {Mode::points, bound});
  }
  check(kitti, {Mode::set, 1500});
  check(kitti, {Mode::set, 500});
  check(kitti, {Mode::points, 200});
  check(nuscenes, {Mode::exact, 1});
}

TEST(Guarantee_Checker, SeesPointsBeyondTheBound) {
  TestCloud cloud;
  cloud.add(0, 0, 0);
  TestCloud moved;
  moved.add(0.05F, 0, 0);  // 0.05 as binary32 lies above 500 / 10000
  const auto a = exact_points(cloud.words, false);
  const auto b = exact_points(moved.words, false);
  EXPECT_EQ(violations(a, b, {500, 10000}), 1U);
  EXPECT_EQ(violations(a, b, {501, 10000}), 0U);
  EXPECT_EQ(pair_violations(cloud.words, moved.words, false, {500, 10000}), 1U);
  EXPECT_EQ(violations(a, {}, {500, 10000}), 1U);
}

TEST(NonFinite_WhenAskedFor, AreKeptBitForBit) {
  TestCloud cloud = adversarial_clouds()[2];
  ASSERT_EQ(cloud.name, "non_finite");
  ScanOptions options;
  options.keep_non_finite = true;
  SerialRunner runner;
  const auto bytes = encode_scan(view_of(cloud, {}), options, runner);
  ASSERT_TRUE(bytes.ok());
  const auto decoded = decode_scan(*bytes, kNoLimit, runner);
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(scan_info(*bytes)->dropped_points, 0U);
  // Four points that are not finite come last, in their order.
  const std::vector<std::uint32_t> expected(cloud.words.begin() + 3, cloud.words.begin() + 15);
  ASSERT_GE(decoded->words.size(), expected.size());
  EXPECT_TRUE(same(std::span(decoded->words).last(expected.size()), expected));
}

TEST(Slices_AnyNumberAndThreads, SameBytesAndBound) {
  const TestCloud cloud = spinning_scan(16, 500, 3, false);
  const ColumnView column{1, cloud.intensity};
  for (const Mode mode : kModes) {
    for (const std::uint32_t slices : {1U, 2U, 7U, 100000U}) {
      const ScanOptions options{mode, 500, false, slices};
      SerialRunner serial;
      Execution execution;
      execution.threads = 4;
      RunnerHandle parallel(execution);
      const auto one = encode_scan(view_of(cloud, {&column, 1}), options, serial);
      const auto many = encode_scan(view_of(cloud, {&column, 1}), options, parallel.get());
      ASSERT_TRUE(one.ok() && many.ok());
      EXPECT_TRUE(std::equal(one->begin(), one->end(), many->begin(), many->end()));
      const auto a = decode_scan(*one, kNoLimit, serial);
      const auto b = decode_scan(*one, kNoLimit, parallel.get());
      ASSERT_TRUE(a.ok() && b.ok());
      EXPECT_TRUE(same(a->words, b->words));
      check(cloud, options);
    }
  }
}

}  // namespace
}  // namespace quern::codec::lidar
