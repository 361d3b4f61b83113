// Steps over moments at rest without races, by what CUDA orders.
#include "tests/simt/cuda_test.h"
#include "tests/unit_cuda_tensor/at_rest_device.h"

namespace quern {
namespace {

class AtRestCudaRaces : public testing::CudaTest {};

TEST_F(AtRestCudaRaces, Steps_HaveNone) {
  simt::Options options;
  options.watch_races = true;
  for (; options.seed <= 4; ++options.seed) {
    SCOPED_TRACE(options.seed);
    simt::reset(options);
    const kernels::AtRestForm form{options.seed % 2 == 0 ? 8u : 4u, true};
    testing::expect_steps_of_the_host(testing::float_cases(3000)[options.seed % 2], form, 2, 1);
    ASSERT_EQ(simt::failure(), "");
  }
}

}  // namespace
}  // namespace quern
