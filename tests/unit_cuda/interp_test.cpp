// Chunks of the interp codec on the simulator: values of the host's decoder, whatever order threads run in, and its
// results to bytes that nobody wrote; bytes of the host's encoder.
#include "tests/unit_cuda/cuda_interp.h"

#include <random>

#include "tests/support/instrumented.h"
#include "tests/unit_cuda/cuda_interp_encoding.h"

namespace quern::codec::interp::test {
namespace {

class InterpCuda : public quern::testing::CudaTest {};

TEST_F(InterpCuda, EveryCase_ValuesOfTheHost) {
  std::uint64_t seed = 1;
  for (const ChunkCase& c : chunk_cases()) {
    SCOPED_TRACE(c.name);
    simt::reset({.seed = ++seed});
    const CodedChunks coded(c);
    if (quern::testing::kInstrumented && coded.bytes() > 100000) continue;
    Vector<std::uint8_t> back(coded.bytes(), 0xA5);
    ASSERT_EQ(decode_on_device(coded, coded.stored, back), std::vector<bool>(coded.stored.size(), true));
    if (coded.stored[0][0] >= 2) {
      ASSERT_GT(simt::counters().launches, 0u) << "a coded chunk has no job";
    }
    ASSERT_EQ(simt::failure(), "");
    ASSERT_EQ(back, expected_of(coded));
  }
}

TEST_F(InterpCuda, EveryCaseEncoded_BytesOfTheHost) {
  std::uint64_t seed = 1;
  EncodeCount count;
  for (const ChunkCase& c : encode_cases()) {
    SCOPED_TRACE(c.name);
    simt::reset({.seed = ++seed});
    const CodedChunks coded(c);
    if (quern::testing::kInstrumented && coded.bytes() > 100000) continue;
    for (std::uint64_t n = 0; n < coded.count(); ++n) {
      DeviceRun run;
      Vector<std::uint8_t> out;
      const Encoded encoded = encode_with(run, coded, n, out);
      ASSERT_EQ(simt::failure(), "");
      count.check(encoded, out, coded, n);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(count.coded, 30u);
  EXPECT_GT(count.raw, 0u);
  EXPECT_GT(count.left, 0u);
  EXPECT_GT(count.wide, 3u);
  EXPECT_GE(count.masked, 4u);
}

TEST_F(InterpCuda, AlteredBytes_ResultsOfTheHost) {
  std::mt19937 random(5);
  std::size_t refused = 0;
  for (const ChunkCase& c : chunk_cases()) {
    const CodedChunks coded(c);
    if (coded.bytes() > 20000 || coded.stored[0][0] < 2) continue;
    SCOPED_TRACE(c.name);
    for (int round = 0; round < 3; ++round) {
      std::vector<Vector<std::uint8_t>> altered = coded.stored;
      altered[0][random() % altered[0].size()] ^= 0x41;
      Vector<std::uint8_t> expected(coded.bytes(), 0x11);
      Vector<std::uint8_t> back(coded.bytes(), 0x11);
      const bool good = coded.decode_on_host(altered[0], coded.box(0, expected.data())).ok();
      ASSERT_EQ(decode_on_device(coded, altered, back)[0], good);
      ASSERT_EQ(simt::failure(), "");
      refused += good ? 0 : 1;
      if (good) {
        ASSERT_EQ(back, expected);
      }
    }
  }
  EXPECT_GT(refused, 5u);
}

}  // namespace
}  // namespace quern::codec::interp::test
