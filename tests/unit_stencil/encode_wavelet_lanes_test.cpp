// Chunks under the wavelet encoded on the lanes of the emulator: the bytes of the host's encoder.
#include "tests/support/thorough.h"
#include "tests/unit_stencil/emulated_steps.h"
#include "tests/unit_stencil/encode_wavelet_cases.h"
#include "tests/unit_stencil/random_encode_case.h"

namespace quern::codec::stencil::test {
namespace {

using quern::testing::EmulatorState;
using quern::testing::EncodingOnLanes;

struct Outcomes {
  std::size_t coded = 0;
  std::size_t left = 0;
  std::size_t lattices = 0;
  std::size_t many_lanes = 0;
  std::size_t exceptions = 0;
  std::size_t one_step = 0;     ///< of coefficients
  std::size_t last_step = 0;    ///< of three was the best
  std::size_t former_step = 0;  ///< was, and had to be taken again

  void compare(const EncodeCase& c, std::uint64_t seed) {
    const ChunkSpec spec = spec_of_encoder_state(c.coding->encoder().device_state());
    for (std::uint64_t chunk = 0; chunk < c.coding->chunks(); ++chunk) {
      EmulatorState::instance().reset(seed + chunk);
      EmulatedSteps run(&EncodingOnLanes::step_wavelet, seed + chunk, c.coding->data().size());
      Bytes out;
      StepsTrace trace;
      const Encoded encoded = encode_steps_with<WaveletEncoding>(run, *c.coding, chunk, out, trace);
      EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
      EXPECT_EQ(EmulatorState::instance().races(), 0u);
      EXPECT_LE(std::max(trace.first_program, trace.later_program),
                WaveletEncoding::most_program_bytes(spec.raw_bytes() / dtype_bytes(spec.dtype)));
      EXPECT_NE(encoded, Encoded::raw);
      if (encoded != Encoded::coded) {
        ++left;
        continue;
      }
      ++coded;
      one_step += trace.steps == 4 ? 1 : 0;
      last_step += trace.steps == 11 ? 1 : 0;
      former_step += trace.steps == 13 ? 1 : 0;
      const Bytes expected = c.coding->encode(chunk);
      lattices += expected[0] == static_cast<std::uint8_t>(Mode::lattice) ? 1 : 0;
      many_lanes += run.lane_count > 1 ? 1 : 0;
      exceptions += run.exception_count;
      EXPECT_EQ(out, expected);
    }
  }
};

TEST(Stencil_EncodeWaveletOnLanes, EveryCase_BytesOfTheHost) {
  Outcomes outcomes;
  std::uint64_t seed = 1;
  for (const EncodeCase& c : encode_wavelet_cases()) {
    SCOPED_TRACE(c.name);
    outcomes.compare(c, ++seed);
    if (HasFailure()) return;
  }
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
  for (unsigned seed = 1; seed <= count; ++seed) {
    const EncodeCase c = random_case_of(seed, "wavelet", seed % 3 == 0 ? "ratio" : "psnr");
    SCOPED_TRACE(c.name);
    outcomes.compare(c, seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(outcomes.coded, count / 5);
  EXPECT_GT(outcomes.left, count / 10);
}

}  // namespace
}  // namespace quern::codec::stencil::test
