// Arrays for tests of what encodes chunks by jobs, and such an encoding as a device runs it.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "codecs/interp/device/chunk_encoding.h"
#include "codecs/interp/device/state.h"
#include "coding/box_rows.h"
#include "tests/unit_interp/chunk_cases.h"

namespace quern::codec::interp::test {

using Bytes = std::vector<std::uint8_t>;

/// What is rare in chunk_cases().
inline std::vector<ChunkCase> encode_cases() {
  std::vector<ChunkCase> all = chunk_cases();
  const char* const cubes = "3d:1,2:4,4,4";
  all.insert(all.end(), {
                            {"masked volume", DType::f32, {18, 20, 33}, 1e-3, cubes, Data::smooth, true},
                            {"masked wide volume", DType::f64, {17, 18, 19}, 1e-7, cubes, Data::smooth, true},
                            {"masked line", DType::f32, {5000}, 1e-3, "1d:0,0,12", Data::smooth, true},
                            {"masked u16 plane", DType::u16, {66, 70}, 2, "2d:1:0,6,6", Data::smooth, true},
                            {"two rows of column tiles", DType::f32, {2, 300, 30}, 1e-3, "3d:1,2:12,0,0"},
                            {"constant", DType::f32, {20, 21}, 1e-3, "auto", Data::constant},
                            {"ramp", DType::f32, {33, 34}, 1e-3, "auto", Data::ramp},
                            {"random bits", DType::f32, {9, 20, 21}, 1e-3, "auto", Data::random_bits},
                            {"largest numbers", DType::f64, {9, 20, 21}, 1e-3, "auto", Data::largest_mixed},
                            {"denormals", DType::f32, {9, 20, 21}, 1e-44, "auto", Data::denormal},
                            {"all NaN", DType::f32, {900}, 1e-3, "auto", Data::all_nan},
                            {"a block of NaN", DType::f32, {17, 18, 19}, 1e-3, cubes, Data::nan_block},
                            {"extremes", DType::i32, {12, 13, 14}, 5, "auto", Data::alternating_extremes},
                            {"codes that do not reach", DType::f64, {17, 18, 19}, 1e-9, cubes, Data::wide_range},
                            {"noise of bytes", DType::u8, {30, 31, 33}, 1, cubes, Data::noise},
                        });
  return all;
}

enum class Encoded { host, raw, coded };

/// Bytes of working memory an element: those that it always takes, and a word of bits where a tile is one element.
inline constexpr std::uint64_t kMostWork = 16 + 4;

/// Encodes chunk `n` on `run`, which has
///   open(work_bytes, elements, special)
///   encode(job) -> InterpEncodeResult
///   list(at, count) -> vector of that many numbers of the working memory
///   write(job, words) -> InterpWriteResult
template <class Run>
Encoded encode_with(Run& run, const CodedChunks& coded, std::uint64_t n, Vector<std::uint8_t>& out) {
  using Outcome = DeviceEncoding::Outcome;
  const ChunkSpec spec = spec_of_encoder_state(coded.encoder().device_state());
  const ConstBox3 in = coded.input(n);
  AlignedBuffer scratch;
  EXPECT_TRUE(scratch.resize(coded.encoder().scratch_bytes()).ok());
  const DeviceEncoding::Room room = DeviceEncoding::room(spec);
  DeviceEncoding encoding;
  Vector<std::uint8_t> job;
  if (!encoding.start(spec, in, {scratch.data(), scratch.size()}, job)) return Encoded::host;
  EXPECT_LE(job.size(), room.first_job);
  Bytes elements;
  Bytes special;
  const std::size_t width = dtype_bytes(coded.dtype());
  for (std::size_t r = 0; r < in.extents[0] * in.extents[1]; ++r) {
    const auto* const row = static_cast<const std::uint8_t*>(in.data) + row_offset(in, r) * width;
    elements.insert(elements.end(), row, row + in.extents[2] * width);
    if (in.special != nullptr) special.insert(special.end(), special_row(in, r), special_row(in, r) + in.extents[2]);
  }
  elements.shrink_to_fit();
  EXPECT_LE(encoding.work_bytes(), room.work);
  EXPECT_LE(encoding.work_bytes(), kMostWork * in.elems() + 4096);
  run.open(encoding.work_bytes(), elements, special);
  const kernels::InterpEncodeResult result = run.encode(job);
  const auto exceptions =
      result.left != 0 ? std::vector<std::uint32_t>() : run.list(encoding.exception_list(), result.exceptions);
  job.clear();
  const auto encoded_of = [](Outcome outcome) { return outcome == Outcome::raw ? Encoded::raw : Encoded::host; };
  const Outcome chosen = encoding.choose(result, exceptions, job);
  if (chosen != Outcome::coded) return encoded_of(chosen);
  EXPECT_LE(job.size(), room.later_job);
  std::vector<std::uint16_t> words(static_cast<std::size_t>(encoding.most_words()));
  const kernels::InterpWriteResult written = run.write(job, words);
  std::uint64_t total = 0;
  for (const auto& section : written.words)
    for (const std::uint32_t count : section) total += count;
  words.resize(total <= words.size() ? total : 0);
  out.assign(coded.encoder().max_chunk_bytes(), 0);
  std::size_t size = 0;
  const Outcome end = encoding.write(written, words, out, size);
  out.resize(size);
  return end == Outcome::coded ? Encoded::coded : encoded_of(end);
}

/// What became of chunks.
struct EncodeCount {
  std::size_t coded = 0;
  std::size_t raw = 0;
  std::size_t left = 0;
  std::size_t wide = 0;
  std::size_t masked = 0;  ///< of those coded

  /// Compares chunk `n` with what the host made of it.
  void check(Encoded encoded, const Vector<std::uint8_t>& out, const CodedChunks& coded_chunks, std::uint64_t n) {
    const Vector<std::uint8_t>& stored = coded_chunks.stored[n];
    switch (encoded) {
      case Encoded::host: ++left; break;
      case Encoded::raw:
        ++raw;
        ASSERT_EQ(stored[0], static_cast<std::uint8_t>(Mode::raw));
        break;
      case Encoded::coded:
        ++coded;
        wide += stored[0] == static_cast<std::uint8_t>(Mode::wide) ? 1 : 0;
        masked += coded_chunks.input(n).special != nullptr ? 1 : 0;
        ASSERT_EQ(out, stored);
        break;
    }
  }
};

}  // namespace quern::codec::interp::test
