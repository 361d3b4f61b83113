// The stencil kernels without races, by what CUDA orders.
#include "tests/unit_cuda/cuda_programs.h"

namespace quern::codec::stencil::test {
namespace {

class StencilCudaRaces : public quern::testing::CudaTest {};

TEST_F(StencilCudaRaces, Decoding_HasNone) {
  simt::Options options;
  options.watch_races = true;
  for (const LanesCase& c : cases()) {
    const auto coding = coding_of(c);
    if (coding->data().size() > 9000) continue;
    SCOPED_TRACE(c.name);
    ++options.seed;
    simt::reset(options);
    Bytes back(coding->data().size());
    ASSERT_EQ(decode_on_device(*coding, encode_chunks(*coding), back)[0], true);
    ASSERT_EQ(simt::failure(), "");
  }
}

}  // namespace
}  // namespace quern::codec::stencil::test
