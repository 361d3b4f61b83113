// Arrays in levels for tests of what encodes them on lanes: those of program_cases.h, what is rare in them, and random
// ones.
#pragma once

#include <limits>

#include "codecs/stencil/levels_encode_steps.h"
#include "tests/unit_stencil/encode_cases.h"

namespace quern::codec::stencil::test {

inline std::vector<EncodeCase> encode_levels_cases() {
  const Settings levels{{"layout", "levels"}};
  const Settings planes{{"layout", "planes"}};
  std::vector<EncodeCase> all;
  for (const LanesCase& c : cases())
    for (const auto& [key, value] : c.settings)
      if (key == "layout" && (value.starts_with("levels") || value.starts_with("planes")))
        all.push_back({c.name, coding_of(c)});
  for (const LanesCase& c : std::vector<LanesCase>{
           {"larger volume", DType::f32, {40, 41, 70}, 1e-3, levels},
           {"larger plane", DType::f64, {190, 201}, 1e-5, levels},
           {"long columns", DType::f32, {700, 9}, 1e-4, levels},
           {"two columns", DType::f32, {600, 2}, 1e-4, levels},
           {"masked plane", DType::f32, {90, 131}, 1e-4, levels, true},
           {"masked line of numbers", DType::f64, {5000}, 1e-5, levels, true},
           {"masked bf16", DType::bf16, {20, 41}, 1e-1, levels, true},
           {"axes put together", DType::f32, {6, 9, 10, 17}, 1e-3, {{"layout", "levels:3d:1,2"}}},
           {"no fit", DType::f32, {20, 31, 50}, 1e-4, {{"layout", "levels"}, {"fit", "off"}}},
           {"no contexts", DType::f32, {20, 31, 50}, 1e-4, {{"layout", "levels"}, {"contexts", "off"}}},
           {"volume of bytes", DType::u8, {20, 33, 41}, 1, levels},
           {"volume of halves", DType::f16, {20, 33, 41}, 1e-2, levels},
           {"planes", DType::f32, {12, 61, 75}, 1e-4, planes},
           {"planes of doubles", DType::f64, {9, 64, 64}, 1e-6, planes},
           {"masked planes", DType::f32, {11, 45, 77}, 1e-4, planes, true},
           {"one plane", DType::f32, {1, 90, 91}, 1e-4, planes},
           {"rows one after another", DType::f32, {40, 501}, 1e-4, planes},
           {"masked rows one after another", DType::f64, {40, 501}, 1e-5, planes, true},
           {"small planes", DType::f32, {300, 17, 19}, 1e-4, planes},
           {"planes of few points", DType::f32, {3000, 5, 3}, 1e-4, planes},
           {"volumes one after another", DType::f32, {5, 14, 22, 35}, 1e-3, planes},
           {"planes of bytes", DType::u8, {9, 50, 61}, 1, planes},
           {"planes without fits", DType::f32, {12, 31, 50}, 1e-4, {{"layout", "planes"}, {"fit", "off"}}}})
    all.push_back({c.name, coding_of(c)});

  for (const Shape& shape : {shape_of({20, 31, 50}), shape_of({150, 171})})
    for (const Settings& layout : {levels, planes}) {
      auto quick =
          std::make_unique<Coding>(DType::f32, shape, as_bytes<float>(waves(shape, 5)), 1e-4, layout, Bytes{}, "speed");
      all.push_back({"short fits", std::move(quick)});
    }

  const auto add = [&](const char* name, std::initializer_list<std::uint64_t> extents, double bound,
                       const auto& change) {
    const Shape shape = shape_of(extents);
    auto values = waves(shape, 7);
    for (std::size_t i = 0; i < values.size(); ++i) change(i, values[i]);
    all.push_back({name, std::make_unique<Coding>(DType::f64, shape, as_bytes<double>(values), bound, levels)});
  };
  std::mt19937 random(3);
  // Residuals of every length.
  add("spikes", {24, 30, 41}, 2e-6, [&](std::size_t, double& v) {
    if (random() % 9 == 0)
      v = std::ldexp(static_cast<double>(random() % 1000) - 500, static_cast<int>(random() % 11) - 10);
  });
  add("exceptions", {24, 30, 41}, 1e-3, [](std::size_t i, double& v) {
    if (i % 11 == 3) v = i % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : -0.0;
  });
  add("too many", {24, 30, 41}, 1e-3, [](std::size_t i, double& v) {
    if (i % 4 != 1) v = std::numeric_limits<double>::quiet_NaN();
  });
  add("constant", {9, 20, 33}, 10, [](std::size_t, double&) {});
  add("nothing but NaN", {9, 20, 33}, 1e-3,
      [](std::size_t, double& v) { v = std::numeric_limits<double>::quiet_NaN(); });
  Bytes noise(16 * 20 * 33);
  for (std::uint8_t& v : noise) v = static_cast<std::uint8_t>(random());
  all.push_back({"noise", std::make_unique<Coding>(DType::u8, shape_of({16, 20, 33}), noise, 0.5, levels)});
  return all;
}

/// One whose type, extents, values, bound, mask and settings are drawn by `seed`: smooth ones, steps, noise that is
/// louder here than there, values on lattices, and values that nothing foresees.
inline EncodeCase random_levels_case(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  constexpr std::array kTypes{DType::f32, DType::f64, DType::f16, DType::bf16, DType::i8,
                              DType::u8,  DType::i16, DType::u16, DType::i32,  DType::u32};
  LanesCase c{"random", kTypes[below(2) == 0 ? below(2) : below(10)], {}, 0, {}};
  c.settings.push_back({"layout", seed % 2 == 0 ? "planes" : "levels"});
  const std::size_t rank = 1 + below(4);
  // Mostly as large as it takes for the finest level to have lanes of its own.
  constexpr std::array<std::uint32_t, 4> kMost{12000, 120, 28, 12};
  const bool any = below(4) == 0;
  for (std::size_t a = 0; a < rank; ++a) {
    const std::uint32_t most = kMost[rank - 1];
    c.extents.push_back(any ? 1 + below(most) : most / 2 + below(most / 2 + 1));
  }
  const Shape shape = Shape::make(Vector<std::uint64_t>(c.extents.begin(), c.extents.end())).value();
  const bool whole = c.dtype != DType::f32 && c.dtype != DType::f64 && c.dtype != DType::f16 && c.dtype != DType::bf16;
  const bool coarse = c.dtype == DType::f16 || c.dtype == DType::bf16;
  c.bound = whole ? below(4) : std::ldexp(1.0, -static_cast<int>(below(coarse ? 8 : 22)));
  if (c.bound == 0) c.bound = 0.5;
  c.masked = below(3) == 0;
  if (below(4) == 0) c.settings.push_back({"fit", "off"});
  if (below(4) == 0) c.settings.push_back({"contexts", "off"});
  if (below(3) == 0) c.settings.push_back({"tightening", String(1, static_cast<char>('0' + below(4)))});
  Bytes data = field(c, shape);
  const std::uint32_t kind = below(6);
  if (c.dtype == DType::f32 || c.dtype == DType::f64) {
    auto values = waves(shape, seed);
    for (std::size_t i = 0; i < values.size(); ++i) {
      double& v = values[i];
      if (kind == 1) v = std::floor(v * 2) + 1e-3 * below(100);
      if (kind == 2 && i % 50 < 20) v += std::ldexp(below(1000), -static_cast<int>(below(14)));
      if (kind == 3) v = std::round(v * 40) * 0.125 + 3;
      if (kind == 4 && below(40) == 0) v = below(2) == 0 ? std::numeric_limits<double>::infinity() : -0.0;
      if (kind == 5 && seed % 4 == 0) v = std::ldexp(below(1u << 20), static_cast<int>(below(60)) - 30);
    }
    data = c.dtype == DType::f32 ? as_bytes<float>(values) : as_bytes<double>(values);
  } else if (kind == 1) {
    const std::size_t width = dtype_bytes(c.dtype);
    for (std::size_t i = 0; i < data.size(); i += width)
      if (below(5) == 0) data[i] = static_cast<std::uint8_t>(random());
  }
  Bytes special;
  if (c.masked)
    for (std::size_t i = 0; i < shape.elems(); ++i) special.push_back(below(5) == 0 ? 1 : 0);
  std::string name = "seed " + std::to_string(seed) + " " + std::string(dtype_name(c.dtype));
  for (const std::uint64_t extent : c.extents) name += " " + std::to_string(extent);
  return {name, std::make_unique<Coding>(c.dtype, shape, data, c.bound, c.settings, special)};
}

struct LevelsTrace {
  std::size_t steps = 0;
  std::size_t first_tables = 0;   ///< bytes of the first program but for coarser points
  std::size_t later_program = 0;  ///< bytes of the largest that follows
};

/// Encodes a chunk: `run` has
///   open(work_bytes, elements, special), and then
///   step(program) -> RasterEncodeAnswer
///   work(at, bytes) -> bytes of the working memory
///   write_lanes(program, words) -> words of each lane
template <class Run>
Encoded encode_levels_with(Run& run, const Coding& coding, std::uint64_t chunk, Bytes& out, LevelsTrace& trace) {
  using Choice = LevelsEncoding::Choice;
  const ChunkSpec spec = spec_of_encoder_state(coding.encoder().device_state());
  const MutableBox3 box = coding.box(chunk, const_cast<std::uint8_t*>(coding.data().data()));
  const ConstBox3 in{box.data, box.extents, box.strides, box.special, box.special_strides};
  const Scratch scratch(coding.encoder().scratch_bytes());
  LevelsEncoding encoding;
  Vector<std::uint8_t> program;
  if (!encoding.start(spec, in, scratch.span(), program)) return Encoded::host;
  const Encoded otherwise = encoding.may_be_raw() ? Encoded::raw : Encoded::host;
  Bytes elements;
  Bytes special;
  dense_box(encoding.box(), dtype_bytes(encoding.dtype()), elements, special);
  run.open(encoding.work_bytes(), elements, special);
  trace = {};
  std::size_t coarser = (spec.form.inner + 1) / 2;
  for (std::size_t a = 0; a < 3; ++a) {
    const std::uint64_t inner = spec.form.inner_of(a, in.extents[a]);
    coarser *= (in.extents[a] / inner + 1) / 2;
  }
  if (spec.form.sequential) coarser *= 2;
  trace.first_tables = program.size() - std::min(program.size(), coarser * LevelsEncoding::kCoarserBytes);
  kernels::RasterEncodeAnswer answer = run.step(program);
  for (trace.steps = 1; encoding.gathers(); ++trace.steps) {
    if (answer.left != 0) return Encoded::host;
    const Bytes samples = run.work(encoding.samples_at(), encoding.samples_bytes());
    program.clear();
    encoding.next(answer, samples, program);
    trace.later_program = std::max(trace.later_program, program.size());
    answer = run.step(program);
  }
  if (answer.left != 0) return Encoded::host;
  const Bytes list = run.work(encoding.exception_list(), answer.exceptions * sizeof(std::uint32_t));
  std::vector<std::uint32_t> exceptions(answer.exceptions);
  if (!list.empty()) std::memcpy(exceptions.data(), list.data(), list.size());
  program.clear();
  const auto after = [&](Choice choice) {
    return choice == Choice::lanes ? Encoded::coded : choice == Choice::raw ? otherwise : Encoded::host;
  };
  const Choice choice = encoding.choose(answer, exceptions, program);
  trace.later_program = std::max(trace.later_program, program.size());
  if (choice != Choice::lanes) return after(choice);
  std::vector<std::uint16_t> words(static_cast<std::size_t>(encoding.most_words()));
  const std::vector<std::uint32_t> lane_words = run.write_lanes(program, words);
  std::uint64_t total = 0;
  for (const std::uint32_t n : lane_words) total += n;
  if (total > encoding.most_words()) return Encoded::host;
  out.assign(coding.encoder().max_chunk_bytes(), 0);
  std::size_t bytes = 0;
  const Choice end = encoding.write(lane_words, words.data(), out, bytes);
  out.resize(end == Choice::lanes ? bytes : 0);
  return after(end);
}

}  // namespace quern::codec::stencil::test
