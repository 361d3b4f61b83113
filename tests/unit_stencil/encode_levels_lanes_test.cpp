// Chunks in levels whose finest level is encoded on the lanes of the emulator: the bytes of the host's encoder.
#include "codecs/stencil/levels_encode_steps.h"
#include "kernels/core/lane_level_encode.h"
#include "kernels/core/lane_rans_encode.h"
#include "tests/emulator/lane_programs.h"
#include "tests/unit_stencil/program_cases.h"

namespace quern::codec::stencil::test {
namespace {

using quern::testing::EmulatedTeam;
using quern::testing::EmulatorState;
using quern::testing::fill_with_noise;
using quern::testing::LaneEmulator;
using quern::testing::program_memory;

enum class Encoded { host, raw, coded };

/// A chunk through all its programs, with working memory of exactly its size that is full of noise at first.
class LevelsOnLanes {
 public:
  LevelsOnLanes(const Coding& coding, std::uint32_t warps, bool watch) : coding_(coding), team_{warps}, watch_(watch) {}

  Encoded encode(std::uint64_t chunk, Bytes& out) {
    const ChunkSpec spec = spec_of_encoder(coding_);
    const MutableBox3 box = coding_.box(chunk, const_cast<std::uint8_t*>(coding_.data().data()));
    const ConstBox3 in{box.data, box.extents, box.strides, box.special, box.special_strides};
    const Scratch scratch(coding_.encoder().scratch_bytes());
    Vector<std::uint8_t> program;
    if (!encoding_.start(spec, in, scratch.span(), program)) return Encoded::host;
    take_box(encoding_.box(), dtype_bytes(encoding_.dtype()));
    auto work = program_memory(encoding_.work_bytes());
    work_ = work.get();
    fill_with_noise(work_, encoding_.work_bytes());
    if (watch_) EmulatorState::instance().watch(work_, encoding_.work_bytes());
    kernels::RasterEncodeAnswer answer = run(program);
    steps = 1;
    for (; encoding_.gathers(); ++steps) {
      if (answer.left != 0) return Encoded::host;
      const Vector<std::uint8_t> samples(work_ + encoding_.samples_at(),
                                         work_ + encoding_.samples_at() + encoding_.samples_bytes());
      program.clear();
      encoding_.next(samples, program);
      answer = run(program);
    }
    if (answer.left != 0) return Encoded::host;
    std::vector<std::uint32_t> list(answer.exceptions);
    if (!list.empty()) std::memcpy(list.data(), work_ + encoding_.exception_list(), 4 * list.size());
    exceptions = list.size();
    program.clear();
    switch (encoding_.choose(answer, list, program)) {
      case LevelsEncoding::Choice::raw: return otherwise();
      case LevelsEncoding::Choice::host: return Encoded::host;
      default: break;
    }
    return write(program, out);
  }

  std::size_t steps = 0;
  std::size_t exceptions = 0;
  std::size_t lanes = 0;

 private:
  static ChunkSpec spec_of_encoder(const Coding& coding) {
    return spec_of_encoder_state(coding.encoder().device_state());
  }
  Encoded otherwise() const { return encoding_.may_be_raw() ? Encoded::raw : Encoded::host; }

  void take_box(const ConstBox3& box, std::size_t width) {
    for (std::size_t r = 0; r < box.extents[0] * box.extents[1]; ++r) {
      const auto* const row = static_cast<const std::uint8_t*>(box.data) + row_offset(box, r) * width;
      elements_.insert(elements_.end(), row, row + box.extents[2] * width);
      if (box.special != nullptr)
        special_.insert(special_.end(), special_row(box, r), special_row(box, r) + box.extents[2]);
    }
    elements_.shrink_to_fit();
  }
  kernels::RasterEncodeAnswer run(const Vector<std::uint8_t>& program) {
    const auto code = program_memory(program.size());
    std::memcpy(code.get(), program.data(), program.size());
    kernels::RasterEncodeAnswer answer;
    const auto shared = std::make_unique<kernels::LevelEncodeShared>();
    std::memset(static_cast<void*>(shared.get()), 0xA5, sizeof *shared);
    kernels::encode_level_chunk<LaneEmulator>(
        team_,
        kernels::EncodeTask{code.get(), work_, elements_.data(), special_.empty() ? nullptr : special_.data(), &answer},
        *shared);
    return answer;
  }
  Encoded write(const Vector<std::uint8_t>& program, Bytes& out) {
    const auto code = program_memory(program.size());
    std::memcpy(code.get(), program.data(), program.size());
    kernels::RowLanesAnswer answer;
    const auto shared = std::make_unique<kernels::LaneEncodeShared>();
    std::memset(static_cast<void*>(shared.get()), 0xA5, sizeof *shared);
    std::vector<std::uint16_t> words(static_cast<std::size_t>(encoding_.most_words()));
    kernels::write_row_lanes<LaneEmulator>(
        team_, kernels::EncodeTask{code.get(), work_, words.data(), nullptr, &answer}, *shared);
    std::uint64_t total = 0;
    for (const std::uint32_t n : answer.words) {
      total += n;
      lanes += n > 0 ? 1 : 0;
    }
    if (total > encoding_.most_words()) return otherwise();
    out.assign(coding_.encoder().max_chunk_bytes(), 0);
    std::size_t bytes = 0;
    switch (encoding_.write(answer.words, words.data(), out, bytes)) {
      case LevelsEncoding::Choice::raw: return otherwise();
      case LevelsEncoding::Choice::host: return Encoded::host;
      default: out.resize(bytes); return Encoded::coded;
    }
  }

  const Coding& coding_;
  EmulatedTeam team_;
  bool watch_;
  LevelsEncoding encoding_;
  Bytes elements_;
  Bytes special_;
  std::uint8_t* work_ = nullptr;
};

struct LevelsCase {
  std::string name;
  std::unique_ptr<Coding> coding;
};

std::vector<LevelsCase> levels_cases() {
  const Settings levels{{"layout", "levels"}};
  std::vector<LevelsCase> all;
  for (const LanesCase& c : cases()) {
    bool in_levels = false;
    for (const auto& [key, value] : c.settings) in_levels = in_levels || (key == "layout" && value == "levels");
    if (in_levels) all.push_back({c.name, coding_of(c)});
  }
  for (const LanesCase& c : std::vector<LanesCase>{
           {"larger volume", DType::f32, {40, 41, 70}, 1e-3, levels},
           {"larger plane", DType::f64, {190, 201}, 1e-5, levels},
           {"long columns", DType::f32, {700, 9}, 1e-4, levels},
           {"masked plane", DType::f32, {90, 131}, 1e-4, levels, true},
           {"masked line of numbers", DType::f64, {5000}, 1e-5, levels, true},
           {"no fit", DType::f32, {20, 31, 50}, 1e-4, {{"layout", "levels"}, {"fit", "off"}}},
           {"no contexts", DType::f32, {20, 31, 50}, 1e-4, {{"layout", "levels"}, {"contexts", "off"}}},
           {"volume of bytes", DType::u8, {20, 33, 41}, 1, levels},
           {"volume of halves", DType::f16, {20, 33, 41}, 1e-2, levels}})
    all.push_back({c.name, coding_of(c)});
  // Residuals of every length, and exceptions.
  const Shape shape = shape_of({24, 30, 41});
  auto values = waves(shape, 7);
  std::mt19937 random(3);
  for (double& v : values)
    if (random() % 9 == 0)
      v = std::ldexp(static_cast<double>(random() % 1000) - 500, static_cast<int>(random() % 11) - 10);
  all.push_back({"spikes", std::make_unique<Coding>(DType::f64, shape, as_bytes<double>(values), 2e-6, levels)});
  values = waves(shape, 8);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % 11 == 3) values[i] = i % 2 == 0 ? std::nan("") : -0.0;
  all.push_back({"exceptions", std::make_unique<Coding>(DType::f64, shape, as_bytes<double>(values), 1e-3, levels)});
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % 4 != 1) values[i] = std::nan("");
  all.push_back({"too many", std::make_unique<Coding>(DType::f64, shape, as_bytes<double>(values), 1e-3, levels)});
  Bytes noise(16 * 20 * 33);
  for (std::uint8_t& v : noise) v = static_cast<std::uint8_t>(random());
  all.push_back({"noise", std::make_unique<Coding>(DType::u8, shape_of({16, 20, 33}), noise, 0.5, levels)});
  return all;
}

TEST(Stencil_EncodeLevelsOnLanes, EveryCase_BytesOfTheHost) {
  std::uint64_t seed = 1;
  std::size_t coded = 0;
  std::size_t raw = 0;
  std::size_t left = 0;
  std::size_t lattices = 0;
  std::size_t many_lanes = 0;
  std::size_t exceptions = 0;
  for (const LevelsCase& c : levels_cases()) {
    SCOPED_TRACE(c.name);
    for (std::uint64_t chunk = 0; chunk < c.coding->chunks(); ++chunk) {
      EmulatorState::instance().reset(++seed);
      LevelsOnLanes run(*c.coding, 1 + static_cast<std::uint32_t>(seed % 5), c.coding->data().size() < 200000);
      Bytes out;
      const Encoded encoded = run.encode(chunk, out);
      EXPECT_EQ(EmulatorState::instance().poison_reads(), 0u);
      EXPECT_EQ(EmulatorState::instance().races(), 0u);
      const Bytes expected = c.coding->encode(chunk);
      switch (encoded) {
        case Encoded::host: ++left; break;
        case Encoded::raw:
          ++raw;
          ASSERT_EQ(expected[0], static_cast<std::uint8_t>(Mode::raw));
          break;
        case Encoded::coded:
          ++coded;
          lattices += expected[0] == static_cast<std::uint8_t>(Mode::lattice) ? 1 : 0;
          many_lanes += run.lanes > 1 ? 1 : 0;
          exceptions += run.exceptions;
          EXPECT_EQ(out, expected);
          break;
      }
    }
  }
  EXPECT_GT(coded, 18u);
  EXPECT_GT(raw, 0u);
  EXPECT_GT(left, 0u);
  EXPECT_GT(lattices, 0u);
  EXPECT_GT(many_lanes, 3u);
  EXPECT_GT(exceptions, 100u);
}

}  // namespace
}  // namespace quern::codec::stencil::test
