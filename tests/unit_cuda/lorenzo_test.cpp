// The lorenzo kernels of kernels/cuda on the simulator: bytes and elements as on the CPU, whatever order blocks and
// threads run in.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/unit_cuda/cuda_grid.h"

namespace quern::kernels {
namespace {

using testing::EncodedGrid;
using testing::GridCase;

class LorenzoCuda : public testing::CudaTest {
 protected:
  testing::CpuGrid cpu_;

  void compare(const GridCase& c) {
    const EncodedGrid expected = cpu_.encode(c);
    const EncodedGrid encoded = testing::encode_on_device(c, expected.bytes.size());
    ASSERT_EQ(encoded.offsets, expected.offsets);
    ASSERT_EQ(encoded.bytes, expected.bytes);
    std::vector<std::uint8_t> wanted(c.elements.size(), 0xa5), got = wanted;
    std::vector<std::uint32_t> wanted_damage, damage;
    cpu_.decode(c, expected, wanted, wanted_damage);
    testing::decode_on_device(c, expected, got, damage);
    ASSERT_EQ(damage, wanted_damage);
    ASSERT_EQ(got, wanted);
    ASSERT_EQ(simt::failure(), "");
  }
};

TEST_F(LorenzoCuda, EveryCase_BytesAndElementsAsOnTheCpu) {
  simt::Options options;
  testing::for_each_grid_case([&](const GridCase& c) {
    if (HasFatalFailure()) return;
    simt::reset(options);
    SCOPED_TRACE(c.name + " seed " + std::to_string(options.seed));
    compare(c);
    ++options.seed;
  });
}

}  // namespace
}  // namespace quern::kernels
