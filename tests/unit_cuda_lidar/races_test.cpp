// The LiDAR kernels without races, by what CUDA orders.
#include "tests/simt/cuda_test.h"
#include "tests/unit_cuda_lidar/clouds.h"

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

}  // namespace
}  // namespace quern
