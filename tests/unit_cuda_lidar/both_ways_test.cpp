// check_both_ways_async against check_both_ways on the host, and against all distances.
#include "tests/unit_cuda_lidar/clouds.h"
#include "tests/unit_cuda_metrics/device.h"

namespace quern {
namespace {

using testing::check_on_device;
using testing::CloudPair;
using testing::DeviceCheck;
using testing::GridPoint;
using testing::random_pair;

class BothWaysOnDevice : public test::OnDevice {};

TEST_F(BothWaysOnDevice, CloudsOfAnySize_FindWhatTheHostFinds) {
  std::mt19937_64 random(11);
  std::uint64_t seed = 1;
  constexpr std::size_t kSizes[][2] = {{0, 0}, {0, 5}, {5, 0}, {1, 1}, {31, 33}, {64, 2}, {700, 300}, {2500, 900}};
  for (const auto& [points, decoded] : kSizes)
    for (const std::int64_t reach : {INT64_C(1), INT64_C(254), INT64_C(38398), kernels::GridCells::kMostReach}) {
      SCOPED_TRACE(::testing::Message() << points << " points, " << decoded << " decoded, reach " << reach << ", seed "
                                        << seed);
      start(seed++);
      const CloudPair pair = random_pair(points, decoded, reach, random);
      testing::expect_as_on_the_host(pair, reach, check_on_device(pair, reach, seed % 3 == 0 ? 1 : 2048));
    }
}

__extension__ using Wide = __int128;

/// Shares nothing with the grid.
std::uint32_t nearest_of_all(const std::vector<GridPoint>& points, const GridPoint& from, std::int64_t reach) {
  std::uint32_t best = UINT32_MAX;
  Wide least = static_cast<Wide>(reach) * reach;
  for (std::uint32_t i = 0; i < points.size(); ++i) {
    Wide square = 0;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const Wide off = static_cast<Wide>(points[i][axis]) - from[axis];
      square += off * off;
    }
    if (square < least || (square == least && best == UINT32_MAX)) {
      least = square;
      best = i;
    }
  }
  return best;
}

TEST_F(BothWaysOnDevice, RandomClouds_FindTheNearestOfAll) {
  std::mt19937_64 random(12);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(seed);
    start(seed);
    const std::int64_t reach = seed % 2 == 0 ? 3 : 38398;
    const CloudPair pair = random_pair(400, 300, reach, random);
    const DeviceCheck got = check_on_device(pair, reach, 3);
    for (std::size_t i = 0; i < pair.points.size(); ++i)
      ASSERT_EQ(got.nearest_decoded[i], nearest_of_all(pair.decoded, pair.points[i], reach)) << i;
    for (std::size_t i = 0; i < pair.decoded.size(); ++i)
      ASSERT_EQ(got.nearest_point[i], nearest_of_all(pair.points, pair.decoded[i], reach)) << i;
  }
}

TEST_F(BothWaysOnDevice, ManyPointsAtOnePlace_FindTheFirst) {
  start();
  CloudPair pair;
  pair.points.assign(3000, GridPoint{5, -5, 5});
  pair.decoded = {GridPoint{5, -5, 6}, GridPoint{5, -5, 6}};
  const DeviceCheck got = check_on_device(pair, 2, 2048);
  EXPECT_EQ(got.nearest_point, (std::vector<std::uint32_t>{0, 0}));
  EXPECT_EQ(got.nearest_decoded, std::vector<std::uint32_t>(3000, 0));
  EXPECT_EQ(got.counts.of_points.largest_square, 1u);
}

TEST_F(BothWaysOnDevice, NumbersBeyondTheirLimits_AreRefused) {
  start();
  kernels::NearGrid grid;
  testing::DeviceBuffer<GridPoint> points(1);
  const std::size_t bytes = kernels::grid_bytes(1, 1, 0);
  testing::DeviceBuffer<std::uint8_t> room(bytes);
  const auto build = [&](std::uint32_t count, std::int64_t reach, unsigned fineness, std::size_t room_bytes,
                         unsigned blocks) {
    return kernels::build_grid_async({points.data(), count}, reach, fineness, room.data(), room_bytes, grid, nullptr,
                                     blocks);
  };
  EXPECT_EQ(build(1, 0, 0, bytes, 1), cudaErrorInvalidValue);
  EXPECT_EQ(build(1, kernels::GridCells::kMostReach + 1, 0, bytes, 1), cudaErrorInvalidValue);
  EXPECT_EQ(build(1, 1, kernels::GridCells::kMostFineness + 1, bytes, 1), cudaErrorInvalidValue);
  EXPECT_EQ(build(1, 1, 0, bytes - 1, 1), cudaErrorInvalidValue);
  EXPECT_EQ(build(1, 1, 0, bytes, 0), cudaErrorInvalidValue);
  EXPECT_EQ(build(kernels::kMostGridPoints + 1, 1, 0, SIZE_MAX, 1), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace quern
