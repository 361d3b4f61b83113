// Arrays in raster order for tests of what encodes them on lanes: those of job_cases.h, and what is rare in them.
#pragma once

#include <limits>

#include "codecs/stencil/device/raster_encode.h"
#include "tests/unit_stencil/job_cases.h"

namespace quern::codec::stencil::test {

struct EncodeCase {
  std::string name;
  std::unique_ptr<Coding> coding;
};

inline std::vector<EncodeCase> encode_cases() {
  const Settings raster{{"layout", "raster"}};
  std::vector<EncodeCase> all;
  for (const LanesCase& c : cases())
    if (c.settings == raster) all.push_back({c.name, coding_of(c)});
  for (const LanesCase& c : std::vector<LanesCase>{
           {"bf16 volume", DType::bf16, {5, 9, 21}, 1e-1, raster},
           {"masked f16", DType::f16, {6, 11, 13}, 1e-2, raster, true},
           {"u8 line", DType::u8, {700}, 1, raster},
           {"u32 rows", DType::u32, {33, 21}, 1, raster},
           {"i32 volume", DType::i32, {4, 9, 40}, 3, raster},
           {"single column", DType::f32, {900, 1}, 1e-3, raster},
           {"rows of two columns in planes", DType::f32, {9, 40, 2}, 1e-3, raster},
           {"many planes", DType::f64, {40, 5, 11}, 1e-5, raster},
           {"no fit", DType::f32, {9, 12, 33}, 1e-3, {{"layout", "raster"}, {"fit", "off"}}},
           {"no contexts", DType::f32, {9, 12, 33}, 1e-3, {{"layout", "raster"}, {"contexts", "off"}}}})
    all.push_back({c.name, coding_of(c)});

  const auto add = [&](const char* name, std::initializer_list<std::uint64_t> extents, double bound,
                       const auto& change) {
    const Shape shape = shape_of(extents);
    auto values = waves(shape, 7);
    for (std::size_t i = 0; i < values.size(); ++i) change(i, values[i]);
    all.push_back({name, std::make_unique<Coding>(DType::f64, shape, as_bytes<double>(values), bound, raster)});
  };
  std::mt19937 random(3);
  // Residuals of every length, up to the largest that has a token.
  add("spikes", {10, 20, 33}, 2e-6, [&](std::size_t, double& v) {
    if (random() % 9 == 0)
      v = std::ldexp(static_cast<double>(random() % 1000) - 500, static_cast<int>(random() % 11) - 10);
  });
  add("spikes of a line", {2500}, 2e-6, [&](std::size_t, double& v) {
    if (random() % 5 == 0)
      v = std::ldexp(static_cast<double>(random() % 1000) - 500, static_cast<int>(random() % 11) - 10);
  });
  add("many exceptions", {12, 20, 33}, 1e-3, [&](std::size_t i, double& v) {
    if (i % 11 == 3)
      v = i % 2 == 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
    if (i % 29 == 5) v = i % 2 == 0 ? -0.0 : 0.0;
  });
  add("too many exceptions", {12, 20, 33}, 1e-3, [&](std::size_t i, double& v) {
    if (i % 4 != 1) v = std::numeric_limits<double>::quiet_NaN();
  });
  // On lattices.
  add("decimals", {6, 20, 30}, 4e-3, [](std::size_t, double& v) { v = std::round(v * 100 + 1000) / 100; });
  add("decimals of a line", {900}, 1.2e-3, [](std::size_t, double& v) { v = std::round(v * 1000 + 5000) / 1000; });
  add("noise on a lattice", {6, 20, 30}, 0.4, [&](std::size_t, double& v) { v = static_cast<double>(random()); });
  // A checkerboard has residuals as long as tokens go.
  auto board = waves(shape_of({8, 16, 20}), 5);
  for (std::size_t i = 0; i < 64; ++i) {
    const std::size_t at[3] = {2 + i / 16, 5 + i / 4 % 4, 7 + i % 4};
    board[(at[0] * 16 + at[1]) * 20 + at[2]] = (at[0] + at[1] + at[2]) % 2 == 0 ? 2.8e8 : -2.8e8;
  }
  all.push_back({"checkerboard", std::make_unique<Coding>(DType::f64, shape_of({8, 16, 20}), as_bytes<double>(board), 1,
                                                          Settings{{"layout", "raster"}, {"fit", "off"}})});
  Bytes noise(8 * 20 * 33);
  for (std::uint8_t& v : noise) v = static_cast<std::uint8_t>(random());
  all.push_back({"noise", std::make_unique<Coding>(DType::u8, shape_of({8, 20, 33}), noise, 0.5, raster)});
  return all;
}

/// Elements and classes of a box, side by side.
inline void dense_box(const ConstBox3& box, std::size_t width, Bytes& elements, Bytes& special) {
  elements.clear();
  special.clear();
  for (std::size_t r = 0; r < box.extents[0] * box.extents[1]; ++r) {
    const auto* const row = static_cast<const std::uint8_t*>(box.data) + row_offset(box, r) * width;
    elements.insert(elements.end(), row, row + box.extents[2] * width);
    if (box.special != nullptr)
      special.insert(special.end(), special_row(box, r), special_row(box, r) + box.extents[2]);
  }
  elements.shrink_to_fit();
}

/// What became of a chunk on lanes.
enum class Encoded { host, raw, coded };

/// Encodes a chunk: `run` has
///   encode(job, work_bytes, elements, special) -> RasterEncodeResult
///   exceptions(at, count) -> vector of indices
///   write_lanes(job, words) -> words of each lane
template <class Run>
Encoded encode_with(Run& run, const Coding& coding, std::uint64_t chunk, Bytes& out, Bytes& elements, Bytes& special) {
  const EncodeSpec spec = spec_of_encoder_state(coding.encoder().device_state());
  const MutableBox3 box = coding.box(chunk, const_cast<std::uint8_t*>(coding.data().data()));
  const ConstBox3 in{box.data, box.extents, box.strides, box.special, box.special_strides};
  const Scratch scratch(coding.encoder().scratch_bytes());
  RasterEncoding encoding;
  Vector<std::uint8_t> job;
  if (!encoding.start(spec, in, scratch.span(), job)) return Encoded::host;
  dense_box(encoding.box(), dtype_bytes(encoding.dtype()), elements, special);
  const kernels::RasterEncodeResult result = run.encode(job, encoding.work_bytes(), elements, special);
  if (result.left != 0) return Encoded::host;
  const std::vector<std::uint32_t> list = run.exceptions(encoding.exception_list(), result.exceptions);
  job.clear();
  const Encoded otherwise = encoding.may_be_raw() ? Encoded::raw : Encoded::host;
  if (!encoding.choose(result, list, job)) return otherwise;
  std::vector<std::uint16_t> words(static_cast<std::size_t>(encoding.most_words()));
  const std::vector<std::uint32_t> lane_words = run.write_lanes(job, words);
  out.assign(coding.encoder().max_chunk_bytes(), 0);
  std::uint64_t total = 0;
  for (const std::uint32_t n : lane_words) total += n;
  const std::size_t bytes = total > encoding.most_words() ? 0 : encoding.write(lane_words, words.data(), out);
  if (bytes == 0) return otherwise;
  out.resize(bytes);
  return Encoded::coded;
}

}  // namespace quern::codec::stencil::test
