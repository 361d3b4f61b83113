// Chunks in levels on the lanes of the emulator: values and answers are those of the host's decoder, whatever the
// bytes.
#include <array>

#include "codecs/stencil/device_state.h"
#include "codecs/stencil/levels_program.h"
#include "tests/emulator/lane_levels.h"
#include "tests/support/instrumented.h"
#include "tests/unit_stencil/helpers.h"

namespace quern::codec::stencil::test {
namespace {

using quern::testing::decode_levels_on_lanes;
using quern::testing::EmulatorState;

struct LanesCase {
  const char* name;
  DType dtype;
  std::vector<std::uint64_t> extents;
  double bound;
  Settings settings;
  bool masked = false;
};

Bytes field(const LanesCase& c, const Shape& shape) {
  auto values = waves(shape, 31);
  if (c.dtype == DType::f64) return as_bytes<double>(values);
  if (c.dtype == DType::f32) {
    values[values.size() / 2] = std::nan("");  // an exception
    values[values.size() - 1] = -HUGE_VAL;
    return as_bytes<float>(values);
  }
  if (c.dtype == DType::f16 || c.dtype == DType::bf16) {
    Bytes bytes(values.size() * 2);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto v = static_cast<float>(values[i]);
      const auto bits =
          static_cast<std::uint16_t>(c.dtype == DType::f16 ? kernels::float_to_half(v) : kernels::float_to_bfloat(v));
      std::memcpy(bytes.data() + 2 * i, &bits, 2);
    }
    return bytes;
  }
  const bool is_signed = c.dtype == DType::i8 || c.dtype == DType::i16 || c.dtype == DType::i32;
  for (double& v : values) v = std::floor(v * 25) + (is_signed ? 0 : 100);
  switch (c.dtype) {
    case DType::i8: return as_bytes<std::int8_t>(values);
    case DType::i16: return as_bytes<std::int16_t>(values);
    case DType::i32: return as_bytes<std::int32_t>(values);
    case DType::u8: return as_bytes<std::uint8_t>(values);
    case DType::u16: return as_bytes<std::uint16_t>(values);
    default: return as_bytes<std::uint32_t>(values);
  }
}

std::unique_ptr<Coding> coding_of(const LanesCase& c) {
  const Shape shape = Shape::make(Vector<std::uint64_t>(c.extents.begin(), c.extents.end())).value();
  Bytes special;
  if (c.masked) {
    special.assign(shape.elems(), 0);
    for (std::size_t i = 0; i < special.size(); ++i) special[i] = i / 5 % 3 == 0 ? 1 : 0;
  }
  return std::make_unique<Coding>(c.dtype, shape, field(c, shape), c.bound, c.settings, special);
}

std::vector<LanesCase> cases() {
  const Settings levels{{"layout", "levels"}};
  const Settings planes{{"layout", "planes"}};
  return {
      {"line", DType::f32, {3000}, 1e-3, levels},
      {"short line", DType::f64, {7}, 1e-2, levels},
      {"plane", DType::f32, {60, 70}, 1e-3, levels},
      {"narrow plane", DType::i16, {300, 3}, 1, levels},
      {"long rows", DType::u16, {5, 700}, 2, levels},
      {"volume", DType::f32, {17, 20, 33}, 1e-3, levels},
      {"volume at a wide bound", DType::f64, {17, 20, 33}, 3e-1, levels},
      {"volume at a tight bound", DType::f64, {17, 20, 33}, 1e-7, levels},
      {"tightened levels", DType::f32, {16, 31, 40}, 1e-2, {{"layout", "levels"}, {"tightening", "3"}}},
      {"four axes", DType::f32, {4, 9, 10, 17}, 1e-3, levels},
      {"four axes in sequence", DType::f64, {5, 9, 10, 17}, 1e-3, planes},
      {"planes", DType::f32, {9, 20, 33}, 1e-2, planes},
      {"rows in sequence", DType::f32, {40, 90}, 1e-3, planes},
      {"masked volume", DType::f64, {9, 20, 33}, 1e-5, levels, true},
      {"masked planes", DType::f32, {9, 20, 33}, 1e-3, planes, true},
      {"masked line", DType::i32, {2000}, 1, levels, true},
      {"several chunks of a line", DType::f32, {300000}, 1e-2, levels},
      {"f16", DType::f16, {20, 41}, 1e-2, levels},
      {"bf16", DType::bf16, {20, 41}, 1e-1, planes},
      {"i8", DType::i8, {12, 13, 14}, 1, levels},
      {"u8", DType::u8, {12, 13, 14}, 1, planes},
      {"u32", DType::u32, {12, 13, 14}, 1, levels},
  };
}

enum class Answer { host, damaged, good };

/// `back` has the array's bytes; `watch` counts races.
Answer decode_on_lanes(const Coding& coding, std::uint64_t chunk, const Bytes& stored, Bytes& back, std::uint32_t warps,
                       bool watch) {
  const ChunkSpec spec = spec_of_state(coding.decoder().device_state());
  const MutableBox3 box = coding.box(chunk, back.data());
  Bytes exact(stored);
  exact.shrink_to_fit();
  Vector<std::uint8_t> program;
  if (!append_levels_program(spec, exact, box, program)) return Answer::host;
  return decode_levels_on_lanes(program, box.data, box.special, warps, watch) ? Answer::good : Answer::damaged;
}

Status decode_on_host(const Coding& coding, std::uint64_t chunk, const Bytes& stored, Bytes& back) {
  const Scratch scratch(coding.decoder().scratch_bytes());
  return coding.decoder().decode(stored, coding.box(chunk, back.data()), scratch.span());
}

TEST(Stencil_LevelsOnLanes, EveryCase_ValuesOfTheHost) {
  std::uint64_t seed = 1;
  for (const LanesCase& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto coding = coding_of(c);
    Bytes expected(coding->data().size(), 0xA5);
    Bytes back(coding->data().size(), 0xA5);
    for (std::uint64_t chunk = 0; chunk < coding->chunks(); ++chunk) {
      const Bytes stored = coding->encode(chunk);
      ASSERT_EQ(stored[0], static_cast<std::uint8_t>(Mode::levels));
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

TEST(Stencil_LevelsOnLanes, OtherModes_AreTheHosts) {
  const Shape shape = shape_of({9, 20, 33});
  const Coding raster(DType::f32, shape, as_bytes<float>(waves(shape, 3)), 1e-2, {{"layout", "raster"}});
  EXPECT_TRUE(raster.decoder().device_state().empty());
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
  ASSERT_EQ(lanes == Answer::good, host.ok()) << host.text();
  if (host.ok()) {
    ASSERT_EQ(back, expected);
  }
}

TEST(Stencil_LevelsOnLanes, AlteredBytes_AnswersOfTheHost) {
  std::mt19937 random(77);
  std::size_t decoded = 0;
  for (const LanesCase& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto coding = coding_of(c);
    if (coding->data().size() > 100000) continue;
    const Bytes stored = coding->encode(0);
    EmulatorState::instance().reset(9);
    for (std::size_t round = 0; round < (quern::testing::kInstrumented ? 4u : 15u); ++round) {
      Bytes altered(stored);
      // Mostly where the model is; a lane's words are the rest.
      const std::size_t most = round % 4 == 0 ? altered.size() : std::min<std::size_t>(altered.size(), 120);
      for (std::size_t n = 1 + random() % 3; n-- > 0;)
        altered[1 + random() % (most - 1)] ^= static_cast<std::uint8_t>(1u << (random() % 8));
      expect_same_answer(*coding, altered);
      if (HasFatalFailure()) return;
      Vector<std::uint8_t> program;
      Bytes none(coding->data().size());
      if (append_levels_program(spec_of_state(coding->decoder().device_state()), altered, coding->box(0, none.data()),
                                program))
        ++decoded;
    }
    for (std::size_t length = 0; length < stored.size(); length += 1 + stored.size() / 12)
      expect_same_answer(*coding, Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length)));
  }
  EXPECT_GT(decoded, 20u);
}

}  // namespace
}  // namespace quern::codec::stencil::test
