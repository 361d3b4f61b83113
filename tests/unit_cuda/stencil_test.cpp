// Chunks of the stencil codec on the simulator: values of the host's decoder, whatever order threads run in, and its
// results to bytes that nobody wrote.
#include "tests/unit_cuda/cuda_jobs.h"

namespace quern::codec::stencil::test {
namespace {

class StencilCuda : public quern::testing::CudaTest {};

TEST_F(StencilCuda, EveryCase_ValuesOfTheHost) {
  std::uint64_t seed = 1;
  for (const LanesCase& c : cases()) {
    SCOPED_TRACE(c.name);
    simt::reset({.seed = ++seed});
    const auto coding = coding_of(c);
    const std::vector<Bytes> stored = encode_chunks(*coding);
    Bytes expected(coding->data().size(), 0xA5);
    for (std::uint64_t chunk = 0; chunk < stored.size(); ++chunk)
      ASSERT_TRUE(decode_on_host(*coding, chunk, stored[chunk], expected).ok());
    Bytes back(coding->data().size(), 0xA5);
    ASSERT_EQ(decode_on_device(*coding, stored, back), std::vector<bool>(stored.size(), true));
    ASSERT_EQ(simt::failure(), "");
    ASSERT_EQ(back, expected);
  }
}

TEST_F(StencilCuda, AlteredWords_AnswersOfTheHost) {
  std::mt19937 random(5);
  std::size_t refused = 0;
  for (const LanesCase& c : cases()) {
    const auto coding = coding_of(c);
    if (coding->data().size() > 20000) continue;
    SCOPED_TRACE(c.name);
    const Bytes stored = coding->encode(0);
    for (int round = 0; round < 3; ++round) {
      Bytes altered(stored);
      altered[altered.size() / 3 + random() % (altered.size() - altered.size() / 3)] ^= 0x41;
      Vector<std::uint8_t> job;
      Bytes expected(coding->data().size(), 0x11);
      if (!append_job(*coding, altered, coding->box(0, expected.data()), job)) continue;
      const bool good = decode_on_host(*coding, 0, altered, expected).ok();
      Bytes back(coding->data().size(), 0x11);
      const bool decoded = decode_on_device(*coding, {altered}, back)[0];
      // Of a chunk in raster order the device may leave what is good to the host.
      if (in_raster_order(stored) && !decoded) continue;
      ASSERT_EQ(decoded, good);
      ASSERT_EQ(simt::failure(), "");
      if (good) {
        ASSERT_EQ(back, expected);
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 5u);
}

}  // namespace
}  // namespace quern::codec::stencil::test
