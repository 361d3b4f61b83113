// The interp kernels without races, by what CUDA orders.
#include <string_view>

#include "tests/support/thorough.h"
#include "tests/unit_cuda/cuda_interp.h"
#include "tests/unit_cuda/cuda_interp_encoding.h"

namespace quern::codec::interp::test {
namespace {

class InterpCudaRaces : public quern::testing::CudaTest {};

/// When thorough every case of up to 20000 bytes; else one in three of up to 9000, without the slowest of them.
bool takes(const ChunkCase& c, std::size_t bytes, std::size_t& number) {
  if (quern::testing::thorough()) return bytes <= 20000;
  return bytes <= 9000 && std::string_view(c.name) != "line of short tiles" && number++ % 3 == 0;
}

TEST_F(InterpCudaRaces, Decoding_HasNone) {
  simt::Options options;
  options.watch_races = true;
  std::size_t number = 0;
  for (const ChunkCase& c : chunk_cases()) {
    const CodedChunks coded(c);
    if (!takes(c, coded.bytes(), number)) continue;
    SCOPED_TRACE(c.name);
    ++options.seed;
    simt::reset(options);
    Vector<std::uint8_t> back(coded.bytes());
    ASSERT_EQ(decode_on_device(coded, coded.stored, back)[0], true);
    ASSERT_EQ(simt::failure(), "");
    if (coded.stored[0][0] >= 2) {
      ASSERT_GT(simt::counters().launches, 0u);
    }
  }
}

TEST_F(InterpCudaRaces, Encoding_HasNone) {
  simt::Options options;
  options.watch_races = true;
  std::size_t number = 0;
  for (const ChunkCase& c : encode_cases()) {
    const CodedChunks coded(c);
    if (!takes(c, coded.bytes(), number)) continue;
    SCOPED_TRACE(c.name);
    ++options.seed;
    simt::reset(options);
    DeviceRun run;
    Vector<std::uint8_t> out;
    EncodeCount count;
    count.check(encode_with(run, coded, 0, out), out, coded, 0);
    ASSERT_EQ(simt::failure(), "");
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace quern::codec::interp::test
