// Chunks in levels whose finest level is encoded on the lanes of the emulator: the bytes of the host's encoder.
#include "tests/support/thorough.h"
#include "tests/unit_stencil/emulated_steps.h"
#include "tests/unit_stencil/encode_levels_cases.h"
#include "tests/unit_stencil/random_encode_case.h"

namespace quern::codec::stencil::test {
namespace {

using quern::testing::EncodingOnLanes;

/// Bytes of the first job that are of coarser points, at most.
std::size_t coarser_bytes(const Coding& coding, std::uint64_t chunk) {
  const EncodeSpec spec = spec_of_encoder_state(coding.encoder().device_state());
  const MutableBox3 box = coding.box(chunk, const_cast<std::uint8_t*>(coding.data().data()));
  std::size_t coarser = (spec.form.inner + 1) / 2;
  for (std::size_t a = 0; a < 3; ++a) coarser *= (box.extents[a] / spec.form.inner_of(a, box.extents[a]) + 1) / 2;
  return (spec.form.sequential ? 2 : 1) * coarser * LevelsEncoding::kCoarserBytes;
}

struct Outcomes : StepsOutcomes {
  std::size_t most_steps = 0;
  std::size_t planes = 0;
  std::size_t tried_again = 0;  ///< the second round was no better than the first

  void compare(const EncodeCase& c, std::uint64_t seed) {
    for (std::uint64_t chunk = 0; chunk < c.coding->chunks(); ++chunk) {
      StepsTrace trace;
      const bool took =
          compare_chunk<LevelsEncoding>(&EncodingOnLanes::step_level, *c.coding, chunk, seed + chunk, trace);
      most_steps = std::max(most_steps, trace.steps);
      EXPECT_LE(trace.first_job, LevelsEncoding::kMostTableBytes + coarser_bytes(*c.coding, chunk));
      EXPECT_LE(trace.later_job, LevelsEncoding::kMostTableBytes);
      if (!took || !spec_of_encoder_state(c.coding->encoder().device_state()).form.sequential) continue;
      ++planes;
      tried_again += trace.steps > 4 ? 1 : 0;  // round, planes twice, symbols
    }
  }
};

TEST(Stencil_EncodeLevelsOnLanes, EveryCase_BytesOfTheHost) {
  Outcomes outcomes;
  compare_cases(encode_levels_cases(), outcomes);
  if (HasFailure()) return;
  EXPECT_GT(outcomes.coded, 18u);
  EXPECT_GT(outcomes.raw, 0u);
  EXPECT_GT(outcomes.left, 0u);
  EXPECT_GT(outcomes.lattices, 0u);
  EXPECT_GT(outcomes.many_lanes, 3u);
  EXPECT_GT(outcomes.exceptions, 100u);
  EXPECT_EQ(outcomes.most_steps, 17u);  // of four axes: 15 classes, what comes before, and symbols
  EXPECT_GT(outcomes.planes, 8u);
}

TEST(Stencil_EncodeLevelsOnLanes, RandomCases_BytesOfTheHost) {
  Outcomes outcomes;
  const unsigned count = quern::testing::thorough() ? 1500 : 90;
  const auto drawn = [](std::size_t i) {
    const auto seed = static_cast<unsigned>(i + 1);
    return random_case_of(seed, seed % 2 == 0 ? "planes" : "levels");
  };
  compare_cases(count, 1, drawn, outcomes);
  if (HasFailure()) return;
  EXPECT_GT(outcomes.coded, count / 4);
  EXPECT_GT(outcomes.left, count / 10);
  EXPECT_GT(outcomes.lattices, 0u);
  EXPECT_GT(outcomes.exceptions, 0u);
  EXPECT_GT(outcomes.planes, count / 12);
  EXPECT_GT(outcomes.tried_again, 0u);
}

}  // namespace
}  // namespace quern::codec::stencil::test
