// Chunks on the lanes of the emulator: values and answers are those of the host's decoder, whatever the
// bytes.
#include "tests/emulator/lane_programs.h"
#include "tests/support/instrumented.h"
#include "tests/unit_stencil/program_cases.h"

namespace quern::codec::stencil::test {
namespace {

using quern::testing::decode_program_on_lanes;
using quern::testing::EmulatorState;

enum class Answer { host, damaged, good };

/// `back` has the array's bytes; `watch` counts races.
Answer decode_on_lanes(const Coding& coding, std::uint64_t chunk, const Bytes& stored, Bytes& back, std::uint32_t warps,
                       bool watch) {
  const MutableBox3 box = coding.box(chunk, back.data());
  Bytes exact(stored);
  exact.shrink_to_fit();
  Vector<std::uint8_t> program;
  if (!append_program(coding, exact, box, program)) return Answer::host;
  return decode_program_on_lanes(program, box.data, box.special, warps, watch) ? Answer::good : Answer::damaged;
}

TEST(Stencil_OnLanes, EveryCase_ValuesOfTheHost) {
  std::uint64_t seed = 1;
  for (const LanesCase& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto coding = coding_of(c);
    Bytes expected(coding->data().size(), 0xA5);
    Bytes back(coding->data().size(), 0xA5);
    for (std::uint64_t chunk = 0; chunk < coding->chunks(); ++chunk) {
      const Bytes stored = coding->encode(chunk);
      ASSERT_TRUE(decode_on_host(*coding, chunk, stored, expected).ok());
      EmulatorState::instance().reset(++seed);
      const bool watch = coding->data().size() < 200000;
      ASSERT_EQ(decode_on_lanes(*coding, chunk, stored, back, 1 + static_cast<std::uint32_t>(seed % 5), watch),
                Answer::good);
      EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
      EXPECT_EQ(EmulatorState::instance().races(), 0u);
    }
    ASSERT_EQ(back, expected);
  }
}

TEST(Stencil_OnLanes, OtherModes_AreTheHosts) {
  const Shape shape = shape_of({9, 20, 33});
  const Coding constant(DType::f32, shape, as_bytes<float>(std::vector<double>(shape.elems(), 4)), 1e-2,
                        {{"layout", "levels"}});
  Bytes back(constant.data().size());
  EXPECT_EQ(decode_on_lanes(constant, 0, constant.encode(0), back, 2, false), Answer::host);
}

/// Bytes that nobody wrote: what the host refuses is refused, by the program's maker or by the lanes; all else gives
/// the host's values.
void expect_same_answer(const Coding& coding, const Bytes& stored) {
  Bytes expected(coding.data().size(), 0x11);
  Bytes back(coding.data().size(), 0x11);
  const Status host = decode_on_host(coding, 0, stored, expected);
  const Answer lanes = decode_on_lanes(coding, 0, stored, back, 3, false);
  if (lanes == Answer::host) return;  // the host has the word
  const bool raster = stored[0] == static_cast<std::uint8_t>(Mode::raster);
  if (raster && lanes == Answer::damaged) return;  // or because of large sums, with which it has the word, too
  ASSERT_EQ(lanes == Answer::good, host.ok()) << host.text();
  if (host.ok()) {
    ASSERT_EQ(back, expected);
  }
}

TEST(Stencil_OnLanes, AlteredBytes_AnswersOfTheHost) {
  std::mt19937 random(77);
  std::size_t decoded = 0;
  for (const LanesCase& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto coding = coding_of(c);
    if (coding->data().size() > 100000) continue;
    const Bytes stored = coding->encode(0);
    EmulatorState::instance().reset(9);
    for (std::size_t round = 0; round < (quern::testing::kInstrumented ? 2u : 6u); ++round) {
      Bytes altered(stored);
      // Mostly where the model is; a lane's words are the rest.
      const std::size_t most = round % 4 == 0 ? altered.size() : std::min<std::size_t>(altered.size(), 120);
      for (std::size_t n = 1 + random() % 3; n-- > 0;)
        altered[1 + random() % (most - 1)] ^= static_cast<std::uint8_t>(1u << (random() % 8));
      expect_same_answer(*coding, altered);
      if (HasFatalFailure()) return;
      Vector<std::uint8_t> program;
      Bytes none(coding->data().size());
      if (append_program(*coding, altered, coding->box(0, none.data()), program)) ++decoded;
    }
    for (std::size_t length = 0; length < stored.size(); length += 1 + stored.size() / 6)
      expect_same_answer(*coding, Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length)));
  }
  EXPECT_GT(decoded, 20u);
}

}  // namespace
}  // namespace quern::codec::stencil::test
