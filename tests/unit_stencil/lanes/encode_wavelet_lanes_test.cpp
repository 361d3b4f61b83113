// Chunks under the wavelet encoded on the lanes of the emulator: the bytes of the host's encoder.
#include "tests/support/thorough.h"
#include "tests/unit_stencil/emulated_steps.h"
#include "tests/unit_stencil/encode_wavelet_cases.h"
#include "tests/unit_stencil/random_encode_case.h"

namespace quern::codec::stencil::test {
namespace {

using quern::testing::EncodingOnLanes;

struct Outcomes : StepsOutcomes {
  std::size_t one_step = 0;     ///< of coefficients
  std::size_t last_step = 0;    ///< of three was the best
  std::size_t former_step = 0;  ///< was, and had to be taken again

  void compare(const EncodeCase& c, std::uint64_t seed) {
    const EncodeSpec spec = spec_of_encoder_state(c.coding->encoder().device_state());
    for (std::uint64_t chunk = 0; chunk < c.coding->chunks(); ++chunk) {
      StepsTrace trace;
      const bool took =
          compare_chunk<WaveletEncoding>(&EncodingOnLanes::step_wavelet, *c.coding, chunk, seed + chunk, trace);
      EXPECT_LE(std::max(trace.first_job, trace.later_job),
                WaveletEncoding::most_job_bytes(spec.raw_bytes() / dtype_bytes(spec.dtype)));
      EXPECT_EQ(raw, 0u);
      if (!took) continue;
      one_step += trace.steps == 4 ? 1 : 0;
      last_step += trace.steps == 11 ? 1 : 0;
      former_step += trace.steps == 13 ? 1 : 0;
    }
  }
};

TEST(Stencil_EncodeWaveletOnLanes, EveryCase_BytesOfTheHost) {
  Outcomes outcomes;
  compare_cases(encode_wavelet_cases(), outcomes);
  if (HasFailure()) return;
  EXPECT_GT(outcomes.coded, 14u);
  EXPECT_GT(outcomes.left, 0u);
  EXPECT_GT(outcomes.lattices, 0u);
  EXPECT_GT(outcomes.many_lanes, 3u);
  EXPECT_GT(outcomes.exceptions, 100u);
  EXPECT_GT(outcomes.one_step, 14u);
  EXPECT_GT(outcomes.last_step, 0u);
  EXPECT_GT(outcomes.former_step, 0u);
  EXPECT_EQ(outcomes.one_step + outcomes.last_step + outcomes.former_step, outcomes.coded);
}

TEST(Stencil_EncodeWaveletOnLanes, RandomCases_BytesOfTheHost) {
  Outcomes outcomes;
  const unsigned count = quern::testing::thorough() ? 800 : 60;
  const auto drawn = [](std::size_t i) {
    const auto seed = static_cast<unsigned>(i + 1);
    return random_case_of(seed, "wavelet", seed % 3 == 0 ? "ratio" : "psnr");
  };
  compare_cases(count, 1, drawn, outcomes);
  if (HasFailure()) return;
  EXPECT_GT(outcomes.coded, count / 5);
  EXPECT_GT(outcomes.left, count / 10);
}

}  // namespace
}  // namespace quern::codec::stencil::test
