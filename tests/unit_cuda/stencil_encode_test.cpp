// Chunks of the stencil codec encoded on the simulator: the bytes of the host's encoder, whatever order threads run in.
#include "tests/unit_cuda/cuda_encoding.h"

namespace quern::codec::stencil::test {
namespace {

class StencilEncodeCuda : public quern::testing::CudaTest {};

TEST_F(StencilEncodeCuda, EveryCase_BytesOfTheHost) {
  std::uint64_t seed = 100;
  std::size_t coded = 0;
  for (const EncodeCase& c : encode_cases()) {
    SCOPED_TRACE(c.name);
    simt::reset({.seed = ++seed});
    coded += compare_with_host(c, "raster");
    if (HasFailure()) return;
  }
  EXPECT_GT(coded, 25u);
}

TEST_F(StencilEncodeCuda, Levels_BytesOfTheHost) {
  std::uint64_t seed = 200;
  std::size_t coded = 0;
  for (const EncodeCase& c : encode_levels_cases()) {
    if (c.coding->data().size() > 300000) continue;
    SCOPED_TRACE(c.name);
    simt::reset({.seed = ++seed});
    coded += compare_with_host(c, "levels");
    if (HasFailure()) return;
  }
  EXPECT_GT(coded, 12u);
}

TEST_F(StencilEncodeCuda, Wavelet_BytesOfTheHost) {
  std::uint64_t seed = 1;
  std::size_t coded = 0;
  for (const EncodeCase& c : encode_wavelet_cases()) {
    SCOPED_TRACE(c.name);
    simt::reset({.seed = ++seed});
    coded += compare_with_host(c, "wavelet");
    if (HasFailure()) return;
  }
  EXPECT_GT(coded, 14u);
}

}  // namespace
}  // namespace quern::codec::stencil::test
