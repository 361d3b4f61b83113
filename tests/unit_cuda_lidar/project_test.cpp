// project_async against projections on the host.
#include "tests/unit_cuda_lidar/rays.h"
#include "tests/unit_cuda_metrics/device.h"

namespace quern {
namespace {

using testing::GridPoint;
using testing::MadeRays;

class ProjectionOnDevice : public test::OnDevice {};

TEST_F(ProjectionOnDevice, CloudsInAnyOrder_GiveTheHitsOfTheHost) {
  std::mt19937_64 random(41);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    start(seed);
    const MadeRays rays(seed == 1 ? 1 : 32, seed == 2 ? 900'000 : 31'000);
    std::vector<std::vector<GridPoint>> clouds = {
        testing::made_points(1500, random), {}, testing::made_points(seed == 3 ? 1 : 700, random)};
    std::vector<kernels::RigidMove> moves = {testing::turn_and_shift(1'000'000, 0), testing::turn_and_shift(5, 7),
                                             testing::turn_and_shift(-700'001, 300'000)};
    const auto expected = testing::project_on_host(rays, clouds, moves);
    testing::expect_same_hits(testing::project_on_device(rays, clouds, moves, 2048), expected);
    std::swap(clouds[0], clouds[2]);
    std::swap(moves[0], moves[2]);
    std::reverse(clouds[0].begin(), clouds[0].end());
    testing::expect_same_hits(testing::project_on_device(rays, clouds, moves, 1), expected);
  }
}

TEST_F(ProjectionOnDevice, NoRaysOrBlocks_AreRefused) {
  start();
  const MadeRays rays(4, 31'000);
  testing::DeviceBuffer<kernels::RayHit> hits(1);
  EXPECT_EQ(kernels::project_async({}, {}, hits.data(), nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(kernels::project_async({}, rays.view(), hits.data(), nullptr, 0), cudaErrorInvalidValue);
}

}  // namespace
}  // namespace quern
