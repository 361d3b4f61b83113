// Bytes that nobody wrote: random chunks, truncated and altered chunks, params that do not fit. Only statuses may come
// of them; the sanitizer build makes sure of the rest.
#include "tests/unit_lossless/helpers.h"

namespace quern::codec::lossless::test {
namespace {

struct Sample {
  DType dtype;
  Shape shape;
  Bytes data;
  Settings settings;
};

std::vector<Sample> samples() {
  std::mt19937_64 random(21);
  std::vector<Sample> list;
  list.push_back({DType::f32, shape_of({6, 20, 33}), {}, {}});
  list.back().data = elements(DType::f32, 3960, [&](std::uint64_t i) { return 0x3f800000 + i * 37 + random() % 64; });
  list.push_back({DType::f64, shape_of({50, 40}), {}, {}});
  list.back().data = elements(DType::f64, 2000, [&](std::uint64_t i) { return (i << 44) + (random() >> 24); });
  list.push_back({DType::f32, shape_of({3000}), {}, {}});  // a dictionary
  list.back().data = elements(DType::f32, 3000, [&](std::uint64_t) { return 0x40000000 + random() % 50 * 99991; });
  list.push_back({DType::i16, shape_of({2000}), {}, {{"zstd", "1"}}});
  list.back().data = elements(DType::i16, 2000, [&](std::uint64_t i) { return i % 100 * i % 7 * 1001; });
  return list;
}

/// Decodes into exact memory; the answer must be ok or corrupt.
bool decode(const Coding& coding, const Bytes& stored, std::size_t raw_bytes) {
  Bytes exact(stored);
  exact.shrink_to_fit();
  Bytes back(raw_bytes);
  const Scratch scratch(coding.decoder().scratch_bytes());
  const Status status = coding.decoder().decode(exact, coding.box(0, back.data()), scratch.span());
  EXPECT_TRUE(status.ok() || status.code() == StatusCode::corrupt) << status.text();
  return status.ok();
}

TEST(LosslessHostile, Truncated_AtEveryLength_IsCorrupt) {
  for (const Sample& sample : samples()) {
    const Coding coding(sample.dtype, sample.shape, sample.data, sample.settings);
    const Bytes stored = coding.encode(0);
    ASSERT_TRUE(decode(coding, stored, sample.data.size()));
    for (std::size_t length = 0; length < stored.size(); length += length < 400 ? 1 : 41) {
      EXPECT_FALSE(decode(coding, Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(length)),
                          sample.data.size()))
          << length;
    }
    Bytes longer = stored;
    longer.push_back(0);
    EXPECT_FALSE(decode(coding, longer, sample.data.size()));
  }
}

TEST(LosslessHostile, FlippedBits_GiveDataOrCorrupt) {
  for (const Sample& sample : samples()) {
    const Coding coding(sample.dtype, sample.shape, sample.data, sample.settings);
    const Bytes stored = coding.encode(0);
    for (std::size_t bit = 0; bit < stored.size() * 8; bit += bit < 3000 ? 1 : 97) {
      Bytes altered = stored;
      altered[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
      decode(coding, altered, sample.data.size());
    }
  }
}

TEST(LosslessHostile, RandomBytes_GiveDataOrCorrupt) {
  std::mt19937_64 random(22);
  for (const Sample& sample : samples()) {
    const Coding coding(sample.dtype, sample.shape, sample.data, sample.settings);
    const Bytes stored = coding.encode(0);
    for (int round = 0; round < 2000; ++round) {
      Bytes noise(random() % 600);
      for (auto& byte : noise) byte = static_cast<std::uint8_t>(random());
      if (!noise.empty()) noise[0] = static_cast<std::uint8_t>(random() % 6);
      // Half of them keep a valid beginning, so that the deeper checks are reached.
      if (round % 2 == 0) std::copy_n(stored.begin(), std::min(noise.size(), random() % 80), noise.begin());
      decode(coding, noise, sample.data.size());
    }
  }
}

TEST(LosslessHostile, ZstdChunk_InAnArrayWithoutZstd_IsCorrupt) {
  const Bytes data = elements(DType::u8, 100, [](std::uint64_t i) { return i * i; });
  const Coding coding(DType::u8, shape_of({100}), data);
  EXPECT_FALSE(decode(coding, {3, 0x28, 0xB5, 0x2F, 0xFD, 0, 0, 1, 0, 0}, data.size()));
}

TEST(LosslessHostile, Open_BadParams_IsRefused) {
  const Shape shape = shape_of({100, 100});
  const auto code_of = [&](Bytes params, std::uint16_t version = 1) {
    OpenRequest request;
    request.shape = shape;
    request.version = version;
    request.params = params;
    return lossless_codec().open(request).status().code();
  };
  EXPECT_EQ(code_of({0, 1, 100, 100, 1, 100, 100}), StatusCode::ok);
  EXPECT_EQ(code_of({0, 1, 100, 100, 1, 100, 100}, 2), StatusCode::unsupported_version);
  EXPECT_NE(code_of({}), StatusCode::ok);
  EXPECT_NE(code_of({0, 1, 100, 100, 1, 100}), StatusCode::ok);
  EXPECT_NE(code_of({0, 1, 100, 100, 1, 100, 100, 0}), StatusCode::ok);
  EXPECT_NE(code_of({2, 1, 100, 100, 1, 100, 100}), StatusCode::ok);
  EXPECT_NE(code_of({0, 1, 100, 99, 1, 100, 99}), StatusCode::ok);
  EXPECT_NE(code_of({0, 1, 100, 100, 1, 0, 100}), StatusCode::ok);
  EXPECT_NE(code_of({0, 1, 100, 100, 1, 101, 100}), StatusCode::ok);
  // Extents whose product is the array's only modulo 2^64.
  const Bytes wrapping{0, 0x80, 0x80, 0x80, 0x80, 0x10, 0x80, 0x80, 0x80, 0x80, 0x10, 1, 1, 1, 1};
  EXPECT_EQ(code_of(wrapping), StatusCode::corrupt);
}

TEST(LosslessHostile, Calls_WithBoxesOrBuffersThatDoNotFit_AreRefused) {
  Bytes data(400);
  const Coding coding(DType::f32, shape_of({100}), data);
  Bytes out(coding.encoder().max_chunk_bytes());
  const Scratch scratch(coding.encoder().scratch_bytes());
  const ConstBox3 good{data.data(), {1, 1, 100}, {100, 100}};
  ConstBox3 bad = good;
  bad.extents[2] = 101;
  EXPECT_EQ(coding.encoder().encode(bad, out, scratch.span()).status().code(), StatusCode::invalid_argument);
  bad.extents[2] = 0;
  EXPECT_EQ(coding.encoder().encode(bad, out, scratch.span()).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(coding.encoder().encode(good, std::span(out).first(9), scratch.span()).status().code(),
            StatusCode::destination_too_small);
  EXPECT_EQ(coding.encoder().encode(good, out, scratch.span().first(64)).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(coding.decoder().decode({}, {data.data(), {1, 1, 100}, {100, 100}}, {}).code(),
            StatusCode::invalid_argument);
}

}  // namespace
}  // namespace quern::codec::lossless::test
