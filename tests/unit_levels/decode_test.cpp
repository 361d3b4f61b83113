// Coarse levels are the points of the whole array, bit for bit, whatever the type, mask, shape, source and threads.
#include "tests/support/instrumented.h"
#include "tests/unit_levels/support.h"

namespace quern::testing {
namespace {

constexpr const char* kLayouts[] = {"levels", "planes"};

/// Every level of a stream, from memory, from a pipe, and with several threads, beside the whole.
void expect_levels(const Bytes& stream, const Shape& shape, DType dtype, unsigned at_least) {
  const std::size_t width = dtype_bytes(dtype);
  const StreamInfo info = info_of(stream);
  EXPECT_GE(info.levels.size(), at_least);
  const Bytes whole = decode_ok(stream, 0);
  for (unsigned level = 1; level <= info.levels.size(); ++level) {
    SCOPED_TRACE(level);
    const Shape& coarse = info.levels[level - 1];
    ASSERT_EQ(coarse.rank(), shape.rank());
    const Bytes wanted = points_of(whole, shape, coarse, level, width);
    DecompressReport report;
    ASSERT_TRUE(decode_ok(stream, level, 1, &report) == wanted);
    EXPECT_EQ(report.input_bytes, stream.size());
    for (const std::size_t threads : {2u, 7u}) ASSERT_TRUE(decode_ok(stream, level, threads) == wanted);
    PipeSource pipe(stream);
    Bytes piped;
    const auto done = decode_at(pipe, level, piped);
    ASSERT_TRUE(done.ok()) << done.status().text();
    ASSERT_TRUE(piped == wanted);
    EXPECT_EQ(done->bytes_read, stream.size());
  }
}

TEST(Levels, OfEveryElementType_AreThePointsOfTheWhole) {
  const Shape shape = shape_of({11, 70, 100});
  for (const char* layout : kLayouts) {
    for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8, DType::i16, DType::i32,
                              DType::u8, DType::u16, DType::u32}) {
      if (kInstrumented && dtype != DType::f32 && dtype != DType::i16) continue;
      SCOPED_TRACE(dtype_name(dtype));
      expect_levels(compress_in(layout, dtype, shape, field(dtype, shape, 3), 0.3), shape, dtype, 6);
    }
  }
}

TEST(Levels, OfOneToFourAxes_AreThePointsOfTheWhole) {
  for (const char* layout : kLayouts) {
    for (const Shape& shape : {shape_of({70001}), shape_of({301, 250}), shape_of({250, 301}), shape_of({40, 50, 61}),
                               shape_of({9, 16, 32, 33}), shape_of({5, 1, 70, 300}), shape_of({6, 1, 1, 20000}),
                               shape_of({100000, 1}), shape_of({3, 4, 8, 32, 40}), shape_of({1, 1, 1})}) {
      SCOPED_TRACE(shape.text() + layout);
      expect_levels(compress_in(layout, DType::f32, shape, field(DType::f32, shape, 4), 1e-3), shape, DType::f32, 0);
    }
  }
}

TEST(Levels, SpecialValues_KeepTheirBits) {
  const Shape shape = shape_of({24, 70, 96});
  Bytes values = field(DType::f32, shape, 5);
  spoil(values, -9999.0f);
  for (const char* layout : kLayouts) {
    const Bytes stream =
        compress_in(layout, DType::f32, shape, values, 1e-2, {}, {std::bit_cast<std::uint32_t>(-9999.0f)});
    expect_levels(stream, shape, DType::f32, 5);
    // Against the original, too: the fill value stands at multiples of 96.
    const Shape coarse = info_of(stream).levels[0];
    const Bytes level = decode_ok(stream, 1);
    const Bytes original = points_of(values, shape, coarse, 1, 4);
    std::size_t special = 0;
    for (std::size_t i = 0; i < level.size(); i += 4) {
      float v;
      std::memcpy(&v, original.data() + i, 4);
      if (std::isfinite(v) && v != -9999.0f) continue;
      ++special;
      ASSERT_EQ(std::memcmp(level.data() + i, original.data() + i, 4), 0);
    }
    EXPECT_GT(special, 300u);
  }
}

TEST(Levels, OfChunksSideBySide_MakeOneGrid) {
  // Odd extents; the first has rows of chunks, the second a line of them, the third segments of their own.
  for (const Shape& shape : {shape_of({2, 603, 901}), shape_of({700001}), shape_of({3, 750003})}) {
    for (const char* layout : kLayouts) {
      SCOPED_TRACE(shape.text() + layout);
      const Bytes stream = compress_in(layout, DType::f32, shape, field(DType::f32, shape, 6), 1e-2);
      EXPECT_GT(info_of(stream).chunks, 1u);
      expect_levels(stream, shape, DType::f32, 5);
    }
  }
}

TEST(Levels, OfManySegments_AreThePointsOfTheWhole) {
  if (kInstrumented) GTEST_SKIP() << "many elements";
  const Shape shape = shape_of({(1 << 24) + 9});  // 65 chunks and more
  const Bytes values = field(DType::i16, shape, 7);
  const Bytes stream = compress_in("levels", DType::i16, shape, values, 4);
  ASSERT_GT(info_of(stream).segments, 1u);
  const Bytes whole = decode_ok(stream, 0);
  for (const unsigned level : {1u, 4u}) {
    const Bytes wanted = points_of(whole, shape, info_of(stream).levels[level - 1], level, 2);
    for (const std::size_t threads : {1u, 7u}) EXPECT_TRUE(decode_ok(stream, level, threads) == wanted);
    // In pieces and little memory.
    MemorySource source(stream);
    DecompressOptions options;
    options.level = level;
    Execution tight;
    tight.memory_limit = 256 << 20;
    const auto decoder = Decoder::open(source, builtin_codecs(), tight, options);
    ASSERT_TRUE(decoder.ok());
    Bytes pieces(wanted.size());
    std::size_t at = 0;
    while (at < pieces.size()) {
      const auto count =
          (*decoder)->pull(std::span(pieces).subspan(at, std::min<std::size_t>(10000, pieces.size() - at)));
      ASSERT_TRUE(count.ok()) << count.status().text();
      at += *count;
    }
    EXPECT_TRUE(pieces == wanted);
  }
}

TEST(Levels, Regions_CountPlacesOfTheLevel) {
  const Shape shape = shape_of({2, 603, 901});
  const Bytes stream = compress_in("levels", DType::f32, shape, field(DType::f32, shape, 8), 1e-2);
  const Shape coarse = info_of(stream).levels[1];
  const Bytes level = decode_ok(stream, 2);
  MemorySource source(stream);
  DecompressOptions options;
  options.level = 2;
  const auto decoder = Decoder::open(source, builtin_codecs(), Execution{}, options);
  ASSERT_TRUE(decoder.ok());
  const Box box = Box::parse(":,100:140,50:220", coarse).value();
  const Shape part = box.shape().value();
  Bytes got(part.elems() * 4);
  ASSERT_TRUE((*decoder)->region(box, {got.data(), DType::f32, part}).ok());
  for (std::uint64_t i = 0; i < part.elems(); ++i) {
    const std::uint64_t from = (i / (40 * 170) * coarse[1] + 100 + i / 170 % 40) * coarse[2] + 50 + i % 170;
    ASSERT_EQ(std::memcmp(got.data() + 4 * i, level.data() + 4 * from, 4), 0) << i;
  }
}

TEST(Levels, SeveralStreams_FollowOneAnother) {
  const Shape shape = shape_of({40, 60, 70});
  Bytes file;
  std::vector<Bytes> wanted;
  for (unsigned step = 0; step < 3; ++step) {
    const Bytes stream = compress_in("levels", DType::f32, shape, field(DType::f32, shape, 20 + step), 1e-3);
    wanted.push_back(decode_ok(stream, 2));
    file.insert(file.end(), stream.begin(), stream.end());
  }
  for (const bool from_pipe : {false, true}) {
    MemorySource memory(file);
    PipeSource pipe(file);
    ByteSource& source = from_pipe ? static_cast<ByteSource&>(pipe) : memory;
    DecompressOptions options;
    options.level = 2;
    options.more_streams = true;
    for (const Bytes& step : wanted) {
      const auto decoder = Decoder::open(source, builtin_codecs(), Execution{}, options);
      ASSERT_TRUE(decoder.ok()) << decoder.status().text();
      Bytes got(step.size());
      ASSERT_TRUE((*decoder)->pull(got).ok());
      EXPECT_TRUE(got == step);
    }
    EXPECT_EQ(source.position(), file.size());
  }
}

TEST(Levels, ReadAFractionOfTheBytes) {
  const Shape shape = shape_of({100, 120, 140});
  for (const char* layout : kLayouts) {
    const Bytes stream = compress_in(layout, DType::f32, shape, field(DType::f32, shape, 9), 1e-2);
    std::size_t before = stream.size();
    for (const unsigned level : {1u, 2u, 3u}) {
      WatchedSource source(stream);
      Bytes out;
      const auto done = decode_at(source, level, out);
      ASSERT_TRUE(done.ok()) << done.status().text();
      EXPECT_LT(source.bytes_read() * 2, before);
      EXPECT_GE(done->bytes_read, source.bytes_read());
      EXPECT_LE(done->bytes_read, source.bytes_read() + 64);  // a few are read twice
      before = source.bytes_read();
    }
  }
}

TEST(Levels, ThatAStreamDoesNotHave_AreRefused) {
  const Shape shape = shape_of({40, 60, 70});
  const Bytes values = field(DType::f32, shape, 10);
  const Bytes stream = compress_in("levels", DType::f32, shape, values, 1e-3);
  const auto levels = static_cast<unsigned>(info_of(stream).levels.size());
  EXPECT_EQ(levels, 7u);
  const auto status_at = [](const Bytes& from, unsigned level) {
    MemorySource source(from);
    Bytes out;
    return decode_at(source, level, out).status();
  };
  EXPECT_TRUE(status_at(stream, levels).ok());
  EXPECT_EQ(status_at(stream, levels + 1).code(), StatusCode::unsupported);
  EXPECT_EQ(status_at(stream, UINT32_MAX).code(), StatusCode::unsupported);
  const Bytes raster = compress_in("raster", DType::f32, shape, values, 1e-3);
  EXPECT_TRUE(info_of(raster).levels.empty());
  EXPECT_EQ(status_at(raster, 1).code(), StatusCode::unsupported);
  CompressOptions options;
  options.codec = "lorenzo";
  options.bound = {BoundKind::abs, 1e-3};
  Bytes other;
  VectorSink sink(other);
  ASSERT_TRUE(compress({values.data(), DType::f32, shape}, options, builtin_codecs(), Execution{}, sink).ok());
  EXPECT_TRUE(info_of(other).levels.empty());
  EXPECT_EQ(status_at(other, 1).code(), StatusCode::unsupported);
  // The shape that a caller gives is that of the level.
  MemorySource source(stream);
  DecompressOptions at;
  at.level = 1;
  Bytes room(values.size());
  EXPECT_EQ(decompress(source, {room.data(), DType::f32, shape}, builtin_codecs(), Execution{}, at).status().code(),
            StatusCode::invalid_shape);
}

TEST(Levels, IncompressibleChunks_AreTheirPoints) {
  const Shape shape = shape_of({2, 300, 301});
  std::mt19937 random(11);
  Bytes values(shape.elems() * 4);
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const float v = static_cast<float>(random());
    std::memcpy(values.data() + i, &v, 4);
  }
  const Bytes stream = compress_in("levels", DType::f32, shape, values, 1e-30);
  expect_levels(stream, shape, DType::f32, 8);
}

}  // namespace
}  // namespace quern::testing
