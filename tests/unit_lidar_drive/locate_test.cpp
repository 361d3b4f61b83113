// Places, poses in binary64, and scans that find where they were made.
#include <gtest/gtest.h>

#include <cmath>

#include "lidar/locate/locator.h"
#include "tests/unit_lidar/clouds.h"
#include "tests/unit_lidar_drive/street.h"

namespace quern::lidar {
namespace {

Vector<UnitPoint> made_scan(std::uint64_t seed) {
  const auto made = quern::lidar_test::spinning_scan(32, 600, seed, false);
  return unit_points(made.words);
}

/// What a sensor that stands elsewhere and is turned has of the same points.
Vector<UnitPoint> seen_from(const Rigid& pose, std::span<const UnitPoint> world) {
  const Rigid back = pose.inverse();
  Vector<UnitPoint> out;
  for (const UnitPoint& point : world) {
    const Spot at = back({static_cast<double>(point[0]) / 1e4, static_cast<double>(point[1]) / 1e4,
                          static_cast<double>(point[2]) / 1e4});
    out.push_back({std::llround(at[0] * 1e4), std::llround(at[1] * 1e4), std::llround(at[2] * 1e4)});
  }
  return out;
}

Rigid turned(double yaw, double x, double y) { return {{std::cos(yaw / 2), 0, 0, std::sin(yaw / 2)}, {x, y, 0}}; }

TEST(Places_OfAnyBytes, AreRefusedOrTheSame) {
  Vector<Place> places(2);
  places[1].pose.translation = {-5, 1'000'000, 77};
  places[1].context = context_of(made_scan(1));
  const auto bytes = write_places(places);
  const auto read = read_places(std::span<const std::uint8_t>(bytes));
  ASSERT_TRUE(read.ok()) << read.status().text();
  ASSERT_EQ(read->size(), 2U);
  EXPECT_EQ((*read)[1].pose, places[1].pose);
  EXPECT_EQ((*read)[1].context, places[1].context);
  EXPECT_EQ(write_places(*read), bytes);
  for (std::size_t at = 0; at < bytes.size(); at += 7) {
    auto flipped = bytes;
    flipped[at] ^= 8;
    EXPECT_FALSE(read_places(std::span<const std::uint8_t>(flipped)).ok()) << at;
    EXPECT_FALSE(read_places(std::span(bytes).first(at)).ok()) << at;
  }
}

TEST(Context_OfATurnedScan, IsTurned) {
  const auto scan = made_scan(1);
  const ScanContext context = context_of(scan);
  EXPECT_EQ(match(context, context).turn, 0U);
  for (const std::size_t sectors : {1U, 17U, 44U}) {
    const double yaw = static_cast<double>(sectors) * M_PI / 30;
    const ContextMatch found = match(context_of(seen_from(turned(yaw, 0, 0), scan)), context);
    EXPECT_EQ(found.turn, sectors);
    EXPECT_LT(found.distance, 0.05);
    EXPECT_NEAR(sector_direction(sectors).cosine, std::cos(yaw), 1e-12);
    EXPECT_NEAR(sector_direction(sectors).sine, std::sin(yaw), 1e-12);
  }
}

TEST(Pose_ThatIsFound, ComesBackFromItsMatrix) {
  quern::lidar_test::Random random(3);
  for (int i = 0; i < 1000; ++i) {
    Rigid rigid;
    double square = 0;
    for (double& part : rigid.turn) {
      part = random.signed_unit();
      square += part * part;
    }
    for (double& part : rigid.turn) part /= std::sqrt(square);
    for (double& part : rigid.at) part = 1000 * random.signed_unit();
    const auto pose = pose_of(rigid, {10'000'000, -20'000'000, 5});
    ASSERT_TRUE(pose.has_value()) << i;
    EXPECT_EQ(pose_of_matrix(matrix_of(*pose)), pose) << i;
    const Rigid back = rigid_of(*pose, {10'000'000, -20'000'000, 5});
    for (std::size_t axis = 0; axis < 3; ++axis) EXPECT_NEAR(back.at[axis], rigid.at[axis], 1e-4);
  }
}

TEST(Scan_WithoutAPose, FindsItsPlaceOrNone) {
  Street street;
  const auto world = made_scan(1);
  ASSERT_TRUE(street.add(world).ok()) << street.report.problem;
  const auto epoch = street.history->epochs(street.report)->front().root;
  const auto places = read_places(*street.history, street.report);
  ASSERT_TRUE(places.ok());
  ASSERT_EQ(places->size(), 1U);
  const std::uint64_t bytes = write_places(*places).size();
  EXPECT_EQ(read_places(*street.history, street.report, bytes)->size(), 1U);
  EXPECT_TRUE(street.report.notes.empty());
  EXPECT_EQ(read_places(*street.history, street.report, bytes - 1)->size(), 0U);
  EXPECT_EQ(street.report.notes.size(), 1U);
  HistoryTiles tiles(History::open(street.disk, kRoot, street.report).value(), 1 << 26);
  Locator locator(tiles, epoch, *places);
  // A drive past the place: the first scan is found by its looks, the others by the motion, too.
  for (int i = 0; i < 4; ++i) {
    const Rigid truth = turned(1.9 + 0.02 * i, -0.8 + 0.5 * i, 0.6);
    const auto found = locator.locate(seen_from(truth, made_scan(1)));
    ASSERT_TRUE(found.ok());
    ASSERT_TRUE(found->has_value()) << i;
    const Rigid at = rigid_of(**found, {});
    for (std::size_t axis = 0; axis < 3; ++axis) EXPECT_NEAR(at.at[axis], truth.at[axis], 0.02) << i;
    const double same = at.turn[0] * truth.turn[0] + at.turn[3] * truth.turn[3];
    EXPECT_GT(same * same, 1 - 1e-6) << i;
  }
  // Half of a cloud of noise lies near nothing.
  quern::lidar_test::Random random(9);
  Vector<UnitPoint> noise;
  for (int i = 0; i < 8000; ++i)
    noise.push_back({static_cast<std::int64_t>(400'000 * random.signed_unit()),
                     static_cast<std::int64_t>(400'000 * random.signed_unit()),
                     static_cast<std::int64_t>(80'000 * random.signed_unit())});
  Locator other(tiles, epoch, *places);
  EXPECT_FALSE(other.locate(noise)->has_value());
  EXPECT_FALSE(other.locate({})->has_value());
  Locator without(tiles, epoch, {});
  EXPECT_FALSE(without.locate(world)->has_value());
}

TEST(Scans_ElsewhereOrOverLostTiles, FindNothingAndFailNothing) {
  Street street;
  const auto world = made_scan(1);
  ASSERT_TRUE(street.add(world).ok()) << street.report.problem;
  const auto epoch = street.history->epochs(street.report)->front().root;
  const auto places = read_places(*street.history, street.report);
  ASSERT_TRUE(places.ok());
  const auto open = [&](std::uint64_t most_bytes) {
    return HistoryTiles(History::open(street.disk, kRoot, street.report).value(), 1 << 26, most_bytes);
  };
  // Three misses, then a look at each 16th scan until one finds its place.
  HistoryTiles tiles = open(UINT64_MAX);
  Locator locator(tiles, epoch, *places);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(locator.locate({})->has_value());
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(locator.locate(world)->has_value()) << i;
  EXPECT_FALSE(locator.locate({})->has_value());
  for (int i = 0; i < 15; ++i) EXPECT_FALSE(locator.locate(world)->has_value()) << i;
  EXPECT_TRUE(locator.locate(world)->has_value());
  EXPECT_TRUE(locator.locate(world)->has_value());

  HistoryTiles narrow = open(100);
  const auto too_large = Locator(narrow, epoch, *places).locate(world);
  ASSERT_TRUE(too_large.ok());
  EXPECT_FALSE(too_large->has_value());
  street.flip(street.files_in("segments")[0], 40);
  HistoryTiles damaged = open(UINT64_MAX);
  const auto lost = Locator(damaged, epoch, *places).locate(world);
  ASSERT_TRUE(lost.ok());
  EXPECT_FALSE(lost->has_value());
  EXPECT_TRUE(damaged.report().problem.empty()) << damaged.report().problem;
  // Without the epoch nothing can be found at all.
  street.flip(street.files_in("epochs")[0], 40);
  HistoryTiles none = open(UINT64_MAX);
  EXPECT_FALSE(Locator(none, epoch, *places).locate(world).ok());
}

}  // namespace
}  // namespace quern::lidar
