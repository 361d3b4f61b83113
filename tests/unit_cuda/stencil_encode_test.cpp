// Chunks of the stencil codec encoded on the simulator: the bytes of the host's encoder, whatever order threads run in.
#include "tests/unit_cuda/cuda_encoding.h"

namespace quern::codec::stencil::test {
namespace {

class StencilEncodeCuda : public quern::testing::CudaTest {};

TEST_F(StencilEncodeCuda, EveryCase_BytesOfTheHost) {
  EXPECT_GT(compare_with_host(encode_cases(), "raster", {.seed = 100}), 25u);
}

TEST_F(StencilEncodeCuda, Levels_BytesOfTheHost) {
  EXPECT_GT(compare_with_host(not_above(300000, encode_levels_cases()), "levels", {.seed = 200}), 12u);
}

TEST_F(StencilEncodeCuda, Wavelet_BytesOfTheHost) {
  EXPECT_GT(compare_with_host(encode_wavelet_cases(), "wavelet", {.seed = 1}), 14u);
}

}  // namespace
}  // namespace quern::codec::stencil::test
