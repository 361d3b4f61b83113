// Chunks in levels whose finest level is encoded on the lanes of the emulator: the bytes of the host's encoder.
#include "tests/emulator/lane_encoding.h"
#include "tests/support/thorough.h"
#include "tests/unit_stencil/encode_levels_cases.h"

namespace quern::codec::stencil::test {
namespace {

using quern::testing::EmulatorState;
using quern::testing::EncodingOnLanes;

struct EmulatedLevels {
  std::uint32_t warps = 1;
  bool watch = false;
  std::unique_ptr<EncodingOnLanes> lanes;
  Bytes elements;
  Bytes special;
  std::size_t exception_count = 0;
  std::size_t lane_count = 0;

  void open(std::uint32_t work_bytes, const Bytes& sent, const Bytes& classes) {
    lanes = std::make_unique<EncodingOnLanes>(work_bytes, warps, watch);
    elements = sent;
    special = classes;
  }
  kernels::RasterEncodeAnswer step(std::span<const std::uint8_t> program) {
    const auto answer = lanes->step_level(program, elements.data(), special.empty() ? nullptr : special.data());
    exception_count = answer.exceptions;
    return answer;
  }
  Bytes work(std::uint32_t at, std::size_t bytes) const { return {lanes->work() + at, lanes->work() + at + bytes}; }
  std::vector<std::uint32_t> write_lanes(std::span<const std::uint8_t> program, std::vector<std::uint16_t>& words) {
    const auto lane_words = lanes->write_lanes(program, words);
    lane_count = static_cast<std::size_t>(
        std::count_if(lane_words.begin(), lane_words.end(), [](std::uint32_t n) { return n > 0; }));
    return lane_words;
  }
};

struct Outcomes {
  std::size_t coded = 0;
  std::size_t raw = 0;
  std::size_t left = 0;
  std::size_t lattices = 0;
  std::size_t many_lanes = 0;
  std::size_t exceptions = 0;
  std::size_t most_steps = 0;
  std::size_t planes = 0;
  std::size_t tried_again = 0;  ///< the second round was no better than the first

  void compare(const EncodeCase& c, std::uint64_t seed) {
    for (std::uint64_t chunk = 0; chunk < c.coding->chunks(); ++chunk) {
      EmulatorState::instance().reset(seed + chunk);
      EmulatedLevels run{
          1 + static_cast<std::uint32_t>((seed + chunk) % 5), c.coding->data().size() < 200000, {}, {}, {}};
      Bytes out;
      LevelsTrace trace;
      const Encoded encoded = encode_levels_with(run, *c.coding, chunk, out, trace);
      EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
      EXPECT_EQ(EmulatorState::instance().races(), 0u);
      most_steps = std::max(most_steps, trace.steps);
      EXPECT_LE(trace.first_tables, LevelsEncoding::kMostTableBytes);
      EXPECT_LE(trace.later_program, LevelsEncoding::kMostTableBytes);
      if (encoded == Encoded::host) {
        ++left;
        continue;
      }
      const Bytes expected = c.coding->encode(chunk);
      if (encoded == Encoded::raw) {
        ++raw;
        EXPECT_EQ(expected[0], static_cast<std::uint8_t>(Mode::raw));
        continue;
      }
      ++coded;
      lattices += expected[0] == static_cast<std::uint8_t>(Mode::lattice) ? 1 : 0;
      many_lanes += run.lane_count > 1 ? 1 : 0;
      exceptions += run.exception_count;
      if (spec_of_encoder_state(c.coding->encoder().device_state()).form.sequential) {
        ++planes;
        tried_again += trace.steps > 4 ? 1 : 0;  // round, planes twice, symbols
      }
      EXPECT_EQ(out, expected);
    }
  }
};

TEST(Stencil_EncodeLevelsOnLanes, EveryCase_BytesOfTheHost) {
  Outcomes outcomes;
  std::uint64_t seed = 1;
  for (const EncodeCase& c : encode_levels_cases()) {
    SCOPED_TRACE(c.name);
    outcomes.compare(c, ++seed);
    if (HasFailure()) return;
  }
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
  for (unsigned seed = 1; seed <= count; ++seed) {
    const EncodeCase c = random_levels_case(seed);
    SCOPED_TRACE(c.name);
    outcomes.compare(c, seed);
    if (HasFailure()) return;
  }
  EXPECT_GT(outcomes.coded, count / 4);
  EXPECT_GT(outcomes.left, count / 10);
  EXPECT_GT(outcomes.lattices, 0u);
  EXPECT_GT(outcomes.exceptions, 0u);
  EXPECT_GT(outcomes.planes, count / 12);
  EXPECT_GT(outcomes.tried_again, 0u);
}

}  // namespace
}  // namespace quern::codec::stencil::test
