// Coarse levels of arrays under interp: the points are those of the whole array bit for bit, and reading them takes the
// beginnings of chunks alone.
#include "tests/unit_levels/support.h"

namespace quern::testing {
namespace {

Bytes interp_stream(DType dtype, const Shape& shape, const Bytes& values, double bound, const char* layout) {
  CompressOptions options;
  options.bound = {BoundKind::abs, bound};
  options.codec = "interp";
  options.settings = {{"layout", layout}};
  Bytes out;
  VectorSink sink(out);
  const auto done = compress({values.data(), dtype, shape}, options, builtin_codecs(), {}, sink);
  EXPECT_TRUE(done.ok()) << done.status().text();
  EXPECT_TRUE(!done.ok() || done->codec == "interp");
  return out;
}

void expect_levels(DType dtype, const Shape& shape, const char* layout, unsigned wanted, bool spoiled = false) {
  SCOPED_TRACE(shape.text() + " " + layout + " " + dtype_name(dtype));
  Bytes values = field(dtype, shape, 5);
  if (spoiled) spoil(values, 3e9F);
  const Bytes stream = interp_stream(dtype, shape, values, 0.5, layout);
  const StreamInfo info = info_of(stream);
  ASSERT_EQ(info.levels.size(), wanted);
  const Bytes whole = decode_ok(stream, 0);
  for (unsigned level = 1; level <= wanted; ++level) {
    MemorySource source(stream);
    DecompressOptions options;
    options.level = level;
    const auto decoder = Decoder::open(source, builtin_codecs(), {}, options);
    ASSERT_TRUE(decoder.ok()) << decoder.status().text();
    const Shape coarse = (*decoder)->shape();
    ASSERT_TRUE(decode_ok(stream, level, 2) == points_of(whole, shape, coarse, level, dtype_bytes(dtype))) << level;
  }
}

TEST(InterpLevels, PointsOfEveryLayout_AreThoseOfTheArray) {
  expect_levels(DType::f32, shape_of({50, 61, 70}), "3d:1,2", 4);
  expect_levels(DType::f64, shape_of({150, 161}), "2d:1", 6);
  expect_levels(DType::i16, shape_of({9000}), "1d", 12);
  expect_levels(DType::f32, shape_of({50, 61, 70}), "3d:1,2", 4, true);
  expect_levels(DType::f32, shape_of({9, 20}), "2d:1:0,0,12", 12);
  expect_levels(DType::f32, shape_of({700}), "3d:1,1:0,0,12", 12);
}

TEST(InterpLevels, FrozenAndMergedAxes_KeepAllPlaces) {
  // Where an axis of the tile is one place long, its points stay; merged axes that tiles go along have no levels.
  const Shape shape = shape_of({5, 6, 40, 50});
  const Bytes values = field(DType::f32, shape, 7);
  const Bytes frozen = interp_stream(DType::f32, shape, values, 0.5, "3d:2,3:0,6,6");
  EXPECT_EQ(info_of(frozen).levels.size(), 6u);
  MemorySource source(frozen);
  DecompressOptions at;
  at.level = 2;
  const auto decoder = Decoder::open(source, builtin_codecs(), {}, at);
  ASSERT_TRUE(decoder.ok());
  EXPECT_EQ((*decoder)->shape().text(), "5x6x10x13");
  EXPECT_EQ(info_of(interp_stream(DType::f32, shape, values, 0.5, "3d:2,3")).levels.size(), 0u);
}

TEST(InterpLevels, CoarseLevels_TakeTheBeginningsOfChunks) {
  const Shape shape = shape_of({128, 128, 128});
  const Bytes stream = interp_stream(DType::f32, shape, field(DType::f32, shape, 31), 0.01, "3d:1,2");
  WatchedSource watched(stream);
  Bytes out;
  ASSERT_TRUE(decode_at(watched, 2, out).ok());
  EXPECT_LT(watched.bytes_read() * 10, stream.size());
}

}  // namespace
}  // namespace quern::testing
