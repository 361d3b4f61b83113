// Grids as warps build and search them, on the emulator, against those of the codec.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "codecs/lidar/geometry/near_points.h"
#include "codecs/lidar/rays/direction.h"
#include "kernels/lidar/ray_hits.h"
#include "kernels/lidar/warp/build_grid.h"
#include "kernels/lidar/warp/find_nearest.h"
#include "tests/emulator/lane_emulator.h"

namespace quern::codec::lidar {
namespace {

using kernels::GridPoint;
using testing::EmulatorState;
using testing::LaneEmulator;

/// Starts of runs of 32, as warps may meet them.
std::vector<std::uint32_t> runs(std::uint64_t count, std::mt19937_64& random) {
  std::vector<std::uint32_t> out;
  for (std::uint64_t i = 0; i < count; i += kernels::kLanes) out.push_back(static_cast<std::uint32_t>(i));
  std::shuffle(out.begin(), out.end(), random);
  return out;
}

class GridOnLanes {
 public:
  GridOnLanes(const std::vector<GridPoint>& points, std::int64_t reach, unsigned fineness, std::mt19937_64& random) {
    room_.cells = kernels::GridCells(points.size(), reach, fineness);
    begins_.assign(room_.cells.buckets(), 0);
    ends_.assign(room_.cells.buckets(), 0);
    entries_.resize(points.size());
    EmulatorState::instance().watch(entries_.data(), entries_.size() * sizeof(kernels::GridEntry));
    room_.points = points.data();
    room_.count = static_cast<std::uint32_t>(points.size());
    room_.begins = begins_.data();
    room_.ends = ends_.data();
    room_.given = &given_;
    room_.entries = entries_.data();
    for (const std::uint32_t first : runs(points.size(), random)) kernels::count_points<LaneEmulator>(room_, first);
    for (const std::uint32_t first : runs(begins_.size(), random)) kernels::give_entries<LaneEmulator>(room_, first);
    for (const std::uint32_t first : runs(points.size(), random)) kernels::put_points<LaneEmulator>(room_, first);
  }
  kernels::NearGrid grid() const { return room_.grid(); }
  std::uint32_t given() const { return given_; }

 private:
  kernels::GridRoom room_;
  std::vector<std::uint32_t> begins_;
  std::vector<std::uint32_t> ends_;
  std::vector<kernels::GridEntry> entries_;
  std::uint32_t given_ = 0;
};

TEST(Lanes_BuildAndSearchGrids, FindWhatTheCodecFinds) {
  std::mt19937_64 random(31);
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    EmulatorState::instance().reset(seed);
    const auto fineness = static_cast<unsigned>(seed % 3);
    const std::int64_t reach = seed % 2 == 0 ? 300 : 5;
    std::vector<GridPoint> points, from;
    const auto any = [&] { return static_cast<std::int64_t>(random() % 4000) - 2000; };
    for (std::uint64_t i = 0; i < 500 + seed; ++i) points.push_back({any(), any(), any() / 16});
    for (std::uint64_t i = 0; i < 150; ++i) from.push_back({any(), any(), any() / 16});
    from.push_back({100'000, 0, 0});
    for (std::uint64_t i = 0; i < 150 + seed; ++i) from.push_back({points[i][0] + 1, points[i][1], points[i][2] - 2});
    const GridOnLanes built(points, reach, fineness, random);
    EXPECT_EQ(built.given(), points.size());
    EXPECT_EQ(EmulatorState::instance().races(), 0u);

    std::vector<std::uint32_t> nearest(from.size());
    kernels::NearestCounts counts;
    for (const std::uint32_t first : runs(from.size(), random)) {
      kernels::NearestFinder<LaneEmulator> finder;
      finder.find(built.grid(), from.data(), static_cast<std::uint32_t>(from.size()), first, nearest.data());
      finder.add_to(counts);
    }
    EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);

    const NearPoints expected(points, reach, fineness);
    kernels::NearestCounts expected_counts;
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto found = expected.nearest(from[i]);
      ASSERT_EQ(nearest[i], found.index) << i;
      if (found.index == kernels::NearestPoint::kNone) {
        ++expected_counts.missing;
      } else {
        expected_counts.largest_square =
            std::max(expected_counts.largest_square, static_cast<std::uint64_t>(found.square));
      }
    }
    EXPECT_EQ(counts.missing, expected_counts.missing);
    EXPECT_EQ(counts.largest_square, expected_counts.largest_square);
    EXPECT_GT(counts.missing, 0u);
    EXPECT_LT(counts.missing, from.size());
  }
}

/// Slots of the hits, and what a hit is chosen by, without keys.
using Slow = std::array<std::int64_t, 5>;

TEST(RayHits_OfAnyPoint, AreOrderedByScoreRangeAndPlace_AndTellTheirPoint) {
  std::mt19937_64 random(51);
  std::vector<kernels::RayRing> rings;
  for (int i = 0; i < 40; ++i) rings.push_back({-20000 + 700 * i + (i == 39 ? 1'000'000 : 0), 13 * i});
  const StepTable table(direction_of(1'000'000, 3'130));
  const kernels::RayView rays{rings.data(), rings.size(), table.search()};
  std::vector<std::pair<kernels::RayHit, Slow>> hits;
  for (int i = 0; i < 4000; ++i) {
    const std::int64_t most = i % 2 == 0 ? kernels::RigidMove::kMostUnits : 60'000;
    const auto any = [&] {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * most + 1)) - most;
    };
    GridPoint point = {any(), any(), any() / (i % 3 + 1)};
    if (i % 5 == 0) point = {kernels::RigidMove::kMostUnits * (i % 2 == 0 ? 1 : -1), 0, -600'000 + i / 40};
    kernels::RayHit hit;
    const std::size_t slot = rays.hit_of(point, hit);
    if (slot == kernels::RayView::kNoSlot) continue;
    ASSERT_LT(slot, rays.slots());
    const std::size_t ring = slot / 2 / rays.columns();
    const kernels::HitPoint told = kernels::RayView::point_of(hit);
    EXPECT_EQ(told.x, point[0]);
    EXPECT_EQ(told.y, point[1]);
    EXPECT_EQ(static_cast<std::uint64_t>(told.range),
              kernels::integer_root(static_cast<std::uint64_t>(told.x * told.x + told.y * told.y)));
    const std::int64_t above = point[2] - rays.height_at(ring, told.range);
    EXPECT_EQ(told.off, above < 0 ? -above : above);
    EXPECT_EQ(slot % 2 == 1, above > 0);
    const std::int64_t score = static_cast<std::int64_t>(hit.first >> 32);
    hits.push_back({hit, {score, told.range, told.x, told.y, told.off}});
  }
  EXPECT_GT(hits.size(), 500U);
  for (std::size_t i = 1; i < hits.size(); ++i)
    for (const std::size_t k : {i - 1, static_cast<std::size_t>(random() % i)}) {
      EXPECT_EQ(hits[i].first < hits[k].first, hits[i].second < hits[k].second);
      EXPECT_EQ(hits[k].first < hits[i].first, hits[k].second < hits[i].second);
    }
}

TEST(IntegerRoot_OfNumbersAtAndBesideSquares, IsExact) {
  for (std::uint64_t root = 1; root < (UINT64_C(1) << 31); root = root * 3 / 2 + 1) {
    EXPECT_EQ(kernels::integer_root(root * root), root);
    EXPECT_EQ(kernels::integer_root(root * root - 1), root - 1);
    EXPECT_EQ(kernels::integer_root(root * root + 2 * root), root);
  }
  EXPECT_EQ(kernels::integer_root(0u), 0u);
  EXPECT_EQ(kernels::integer_root((UINT64_C(1) << 62) - 1), (UINT64_C(1) << 31) - 1);
}

}  // namespace
}  // namespace quern::codec::lidar
