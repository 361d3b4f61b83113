// at_rest_step_async against AtRestMoments::step on the host.
#include "tests/unit_cuda_metrics/device.h"
#include "tests/unit_cuda_tensor/at_rest_device.h"

namespace quern {
namespace {

using kernels::AtRestForm;

class AtRestOnDevice : public test::OnDevice {};

TEST_F(AtRestOnDevice, Steps_OfEveryFormAndKindOfValues_GiveTheBitsOfTheHost) {
  std::uint64_t seed = 0;
  for (const AtRestForm form : {AtRestForm{8, true}, AtRestForm{8, false}, AtRestForm{4, true}, AtRestForm{4, false}})
    for (const testing::FloatCase& values : testing::float_cases(1000)) {
      start(++seed);
      testing::expect_steps_of_the_host(values, form, 2, seed % 2 == 0 ? 1 : kernels::kMostAtRestBlocks);
    }
}

TEST_F(AtRestOnDevice, Steps_OfSeveralTiles_GiveTheBitsOfTheHost) {
  std::uint64_t seed = 50;
  for (const AtRestForm form : {AtRestForm{8, true}, AtRestForm{4, true}})
    for (const std::size_t which : {0u, 1u}) {
      start(++seed);
      testing::expect_steps_of_the_host(testing::float_cases(2 * kernels::kAtRestTile + 300)[which], form, 1, 2);
    }
}

TEST_F(AtRestOnDevice, PointersThatDoNotFit_AreRefused) {
  start();
  testing::DeviceBuffer<float> floats(64);
  testing::DeviceBuffer<std::uint32_t> words(1024);
  kernels::AtRestRangeOnDevice range;
  range.values = 16;
  range.fixed = words.data();
  kernels::AtRestArrays<float> arrays{floats.data(), floats.data() + 32, nullptr};
  const auto run = [&](void* scratch, unsigned blocks, const kernels::AtRestStep& step = {}) {
    return kernels::at_rest_step_async(step, range, arrays, scratch, nullptr, blocks);
  };
  EXPECT_EQ(run(nullptr, 1), cudaErrorInvalidValue);
  EXPECT_EQ(run(words.data(), 0), cudaErrorInvalidValue);
  EXPECT_EQ(run(words.data(), 1, {{5, true}, 0, {}}), cudaErrorInvalidValue);
  arrays.weight = floats.data() + 33;
  EXPECT_EQ(run(words.data(), 1), cudaErrorInvalidValue);
  arrays.weight = nullptr;
  EXPECT_EQ(run(words.data(), 1), cudaErrorInvalidValue);
  range.values = 0;
  EXPECT_EQ(run(nullptr, 1), cudaSuccess);
}

}  // namespace
}  // namespace quern
