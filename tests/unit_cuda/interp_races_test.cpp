// The interp kernels without races, by what CUDA orders.
#include "tests/unit_cuda/cuda_interp.h"

namespace quern::codec::interp::test {
namespace {

class InterpCudaRaces : public quern::testing::CudaTest {};

TEST_F(InterpCudaRaces, Decoding_HasNone) {
  simt::Options options;
  options.watch_races = true;
  for (const ChunkCase& c : chunk_cases()) {
    const CodedChunks coded(c);
    if (coded.bytes() > 20000) continue;
    SCOPED_TRACE(c.name);
    ++options.seed;
    simt::reset(options);
    Vector<std::uint8_t> back(coded.bytes());
    ASSERT_EQ(decode_on_device(coded, coded.stored, back)[0], true);
    ASSERT_EQ(simt::failure(), "");
  }
}

}  // namespace
}  // namespace quern::codec::interp::test
