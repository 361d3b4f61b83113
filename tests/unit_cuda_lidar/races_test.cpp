// The LiDAR kernels without races, by what CUDA orders.
#include "tests/simt/cuda_test.h"
#include "tests/unit_cuda_lidar/clouds.h"
#include "tests/unit_cuda_lidar/rays.h"

namespace quern {
namespace {

class LidarCudaRaces : public testing::CudaTest {};

TEST_F(LidarCudaRaces, ChecksOfBothDirections_HaveNone) {
  std::mt19937_64 random(21);
  simt::Options options;
  options.watch_races = true;
  for (; options.seed <= 6; ++options.seed) {
    SCOPED_TRACE(options.seed);
    simt::reset(options);
    const testing::CloudPair pair = testing::random_pair(900, 400, 38398, random);
    const testing::DeviceCheck got = testing::check_on_device(pair, 38398, 2048);
    ASSERT_EQ(simt::failure(), "");
    testing::expect_as_on_the_host(pair, 38398, got);
  }
}

TEST_F(LidarCudaRaces, Projections_HaveNone) {
  std::mt19937_64 random(22);
  simt::Options options;
  options.watch_races = true;
  const testing::MadeRays rays(16, 31'000);
  for (; options.seed <= 4; ++options.seed) {
    SCOPED_TRACE(options.seed);
    simt::reset(options);
    const std::vector<std::vector<testing::GridPoint>> clouds = {testing::made_points(500, random),
                                                                 testing::made_points(300, random)};
    const std::vector<kernels::RigidMove> moves = {testing::turn_and_shift(1'000'000, 0),
                                                   testing::turn_and_shift(9, -40)};
    const auto got = testing::project_on_device(rays, clouds, moves, 2048);
    ASSERT_EQ(simt::failure(), "");
    testing::expect_same_hits(got, testing::project_on_host(rays, clouds, moves));
  }
}

}  // namespace
}  // namespace quern
