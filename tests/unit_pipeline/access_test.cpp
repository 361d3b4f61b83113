// Regions, several streams in one file, progress, and the questions that can be asked without decoding.
#include "tests/unit_pipeline/support.h"

namespace quern::testing {
namespace {

Array slice(const Array& whole, const Box& box) {
  Array part(whole.dtype, box.shape().value());
  const std::size_t w = dtype_bytes(whole.dtype);
  std::array<std::uint64_t, kMaxRank> at{};
  for (std::uint64_t i = 0; i < part.shape.elems(); ++i) {
    std::uint64_t rest = i;
    for (std::size_t a = box.rank; a-- > 0;) {
      at[a] = box.begin[a] + rest % part.shape[a];
      rest /= part.shape[a];
    }
    std::uint64_t flat = 0;
    for (std::size_t a = 0; a < box.rank; ++a) flat = flat * whole.shape[a] + at[a];
    std::memcpy(part.bytes.data() + i * w, whole.bytes.data() + flat * w, w);
  }
  return part;
}

TEST(Region, RandomBoxes_EqualSlicesOfTheWhole) {
  const ToyRegistry toys;
  std::mt19937 rng(17);
  const std::vector<Vector<std::uint64_t>> shapes{
      {}, {5000}, {150, 90}, {40, 70, 130}, {3, 4, 20, 60, 50}, {2, 3, 2, 3, 2, 3, 2, 3}, {1, 300, 400}, {3, 17, 4200}};
  for (const auto& extents : shapes) {
    const Shape shape = shape_of(extents);
    SCOPED_TRACE(shape.text());
    Array a = smooth(DType::f32, shape);
    spoil(a, 0.0f);
    const auto stream = compress_ok(a, with_bound(BoundKind::abs, 0.01), toys.registry);
    const Array whole = decompress_ok(stream, a.dtype, shape, toys.registry);
    MemorySource source(stream);
    Execution execution = with_threads(2);
    const auto decoder = Decoder::open(source, toys.registry, execution);
    ASSERT_TRUE(decoder.ok());
    for (int round = 0; round < 30; ++round) {
      Box box;
      box.rank = shape.rank();
      for (std::size_t axis = 0; axis < box.rank; ++axis) {
        const std::uint64_t p = rng() % (shape[axis] + 1);
        const std::uint64_t q = rng() % 4 == 0 ? (rng() % 2) * shape[axis] : rng() % (shape[axis] + 1);
        box.begin[axis] = std::min(p, q);
        box.end[axis] = std::max(p, q);
      }
      if (round == 0) box = Box::whole(shape);
      Array part(a.dtype, box.shape().value());
      const Status status = (*decoder)->region(box, part.target());
      ASSERT_TRUE(status.ok()) << status.text();
      ASSERT_TRUE(part.bytes == slice(whole, box).bytes) << "seed 17, round " << round;
    }
    // Pulling goes on as if nothing had happened.
    Array pulled(a.dtype, shape);
    const auto n = (*decoder)->pull(pulled.bytes);
    ASSERT_TRUE(n.ok()) << n.status().text();
    EXPECT_TRUE(pulled.bytes == whole.bytes);
  }
}

TEST(Region, TightMemory_GivesTheSame) {
  const ToyRegistry toys;
  const Array a = smooth(DType::f32, shape_of({64, 128, 160}));
  const auto stream = compress_ok(a, with_bound(BoundKind::lossless), toys.registry);
  Execution tight = with_threads(4);
  tight.memory_limit = 6 << 20;
  MemorySource source(stream);
  const auto decoder = Decoder::open(source, toys.registry, tight);
  ASSERT_TRUE(decoder.ok());
  const Box box = Box::parse(":,3:120,5", a.shape).value();
  Array part(a.dtype, box.shape().value());
  const Status status = (*decoder)->region(box, part.target());
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(part.bytes == slice(a, box).bytes);
}

TEST(Region, ReadsOnlyTheSegmentsItMeets) {
  const ToyRegistry toys;
  const Array a = smooth(DType::f64, shape_of({64, 64, 64}));
  auto stream = compress_ok(a, with_bound(BoundKind::lossless), toys.registry);
  // Damage near the front is not seen by a region at the end.
  MemorySource clean(stream);
  const auto info = inspect(clean, toys.registry);
  ASSERT_TRUE(info.ok());
  ASSERT_GT(info->segments, 1u);
  stream[info->header_bytes + 1000] ^= 1;
  MemorySource source(stream);
  const auto decoder = Decoder::open(source, toys.registry, {});
  ASSERT_TRUE(decoder.ok());
  const Box end = Box::parse("60:64,:,:", a.shape).value();
  Array part(a.dtype, end.shape().value());
  EXPECT_TRUE((*decoder)->region(end, part.target()).ok());
  EXPECT_TRUE(part.bytes == slice(a, end).bytes);
  const Box begin = Box::parse("0:1,:,:", a.shape).value();
  Array other(a.dtype, begin.shape().value());
  EXPECT_EQ((*decoder)->region(begin, other.target()).code(), StatusCode::checksum_mismatch);
}

TEST(Region, FromAPipe_IsUnsupported) {
  const ToyRegistry toys;
  const Array a = smooth(DType::f32, shape_of({100}));
  const auto stream = compress_ok(a, with_bound(BoundKind::lossless), toys.registry);
  PipeSource source(stream);
  const auto decoder = Decoder::open(source, toys.registry, {});
  ASSERT_TRUE(decoder.ok());
  Array part(a.dtype, a.shape);
  EXPECT_EQ((*decoder)->region(Box::whole(a.shape), part.target()).code(), StatusCode::unsupported);
}

struct ThreeStreams {
  ToyRegistry toys;
  std::vector<Array> arrays{smooth(DType::f32, shape_of({30, 40})), random_bits(DType::u16, shape_of({77}), 2),
                            smooth(DType::f64, shape_of({20, 64, 64}))};
  Vector<std::uint8_t> file;
  std::vector<std::size_t> sizes;

  ThreeStreams() {
    for (const Array& a : arrays) {
      const auto one = compress_ok(a, with_bound(BoundKind::lossless), toys.registry);
      sizes.push_back(one.size());
      file.insert(file.end(), one.begin(), one.end());
    }
  }
};

TEST(Streams, RegionBeforeAStreamThatWasCutOrDamaged_IsFound) {
  const ThreeStreams three;
  const Array& a = three.arrays.front();
  const Box box = Box::parse("3:9,5:6", a.shape).value();
  auto cut = three.file;
  cut.resize(cut.size() - 7);  // an append that was killed
  auto damaged = three.file;
  damaged[damaged.size() - 3] ^= 0x10;
  for (const auto& file : {cut, damaged}) {
    MemorySource source(file);
    const auto decoder = Decoder::open(source, three.toys.registry, {});
    ASSERT_TRUE(decoder.ok());
    Array part(a.dtype, box.shape().value());
    const Status status = (*decoder)->region(box, part.target());
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_TRUE(part.bytes == slice(a, box).bytes);
  }
  // The last stream itself lost its trailer: nothing vouches for its segments.
  MemorySource source(cut);
  DecompressOptions options;
  options.offset = three.sizes[0] + three.sizes[1];
  const auto last = Decoder::open(source, three.toys.registry, {}, options);
  ASSERT_TRUE(last.ok());
  const Array& c = three.arrays.back();
  Array part(c.dtype, c.shape);
  EXPECT_EQ((*last)->region(Box::whole(c.shape), part.target()).code(), StatusCode::truncated);
}

TEST(Streams, OneAfterAnother_ReadFromAPipeUntilItsEnd) {
  const ThreeStreams three;
  PipeSource source(three.file);
  DecompressOptions options;
  options.more_streams = true;
  for (const Array& expected : three.arrays) {
    Array got(expected.dtype, expected.shape);
    const auto result = decompress(source, got.target(), three.toys.registry, {}, options);
    ASSERT_TRUE(result.ok()) << result.status().text();
    EXPECT_TRUE(got.bytes == expected.bytes);
  }
  const auto end = Decoder::open(source, three.toys.registry, {}, options);
  EXPECT_EQ(end.status().code(), StatusCode::truncated);
  EXPECT_EQ(end.status().first(), 0);
}

TEST(Streams, Listed_AndReachedByOffset) {
  const ThreeStreams three;
  MemorySource source(three.file);
  const auto spans = list_streams(source);
  ASSERT_TRUE(spans.ok()) << spans.status().text();
  ASSERT_EQ(spans->size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*spans)[i].bytes, three.sizes[i]);
    const Array& expected = three.arrays[i];
    DecompressOptions options;
    options.offset = (*spans)[i].offset;
    const auto decoder = Decoder::open(source, three.toys.registry, {}, options);
    ASSERT_TRUE(decoder.ok()) << decoder.status().text();
    Box box = Box::whole(expected.shape);
    box.begin[0] = 5;
    Array part(expected.dtype, box.shape().value());
    const Status status = (*decoder)->region(box, part.target());
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_TRUE(part.bytes == slice(expected, box).bytes);
  }
}

TEST(Streams, RegionOfALaterStreamWhereTheSourceStands_IsThatStreams) {
  const ThreeStreams three;
  MemorySource source(three.file);
  ASSERT_TRUE(source.seek(three.sizes[0]).ok());
  const auto decoder = Decoder::open(source, three.toys.registry, {});
  ASSERT_TRUE(decoder.ok());
  Box box = Box::whole(three.arrays[1].shape);
  box.begin[0] = 5;
  Array part(DType::u16, box.shape().value());
  const Status status = (*decoder)->region(box, part.target());
  ASSERT_TRUE(status.ok()) << status.text();
  EXPECT_TRUE(part.bytes == slice(three.arrays[1], box).bytes);
}

TEST(Streams, ListOfDamagedFile_Fails) {
  const ThreeStreams three;
  for (std::size_t cut = 1; cut < 30; ++cut) {
    MemorySource source({three.file.data(), three.file.size() - cut});
    EXPECT_FALSE(list_streams(source).ok());
  }
}

TEST(Progress, ReturningFalse_Cancels) {
  const ToyRegistry toys;
  const Array a = smooth(DType::f64, shape_of({40, 70, 130}));
  std::uint64_t last = 0;
  Execution execution;
  execution.progress = [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_GT(done, last);
    EXPECT_EQ(total, a.shape.elems());
    last = done;
    return true;
  };
  const auto stream = compress_ok(a, with_bound(BoundKind::lossless), toys.registry, execution);
  EXPECT_EQ(last, a.shape.elems());
  execution.progress = [](std::uint64_t, std::uint64_t) { return false; };
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  EXPECT_EQ(compress(a.view(), with_bound(BoundKind::lossless), toys.registry, execution, sink).status().code(),
            StatusCode::cancelled);
  MemorySource source(stream);
  Array back(a.dtype, a.shape);
  EXPECT_EQ(decompress(source, back.target(), toys.registry, execution).status().code(), StatusCode::cancelled);
}

TEST(Inspect, StreamOfUnknownCodec_StillTellsWhatItHolds) {
  const ToyRegistry toys;
  const Array a = smooth(DType::f32, shape_of({30, 40}));
  CompressOptions options = with_bound(BoundKind::rel, 1e-3);
  options.metadata = {1, 2, 3};
  options.fill_bits = {0x449a5225};
  const auto stream = compress_ok(a, options, toys.registry);
  MemorySource source(stream);
  const auto info = inspect(source, Registry({}));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(info->codec_name, "unknown");
  EXPECT_EQ(info->codec_id, 201);
  EXPECT_EQ(info->shape, a.shape);
  EXPECT_EQ(info->requested.kind, BoundKind::rel);
  EXPECT_EQ(info->requested.value, 1e-3);
  EXPECT_EQ(info->enforced.kind, BoundKind::abs);
  ASSERT_TRUE(info->range.has_value());
  EXPECT_LE(info->enforced.value, 1e-3 * (info->range->max - info->range->min));
  EXPECT_EQ(info->metadata, options.metadata);
  EXPECT_EQ(info->fill_bits, options.fill_bits);
  MemorySource again(stream);
  EXPECT_EQ(Decoder::open(again, Registry({}), {}).status().code(), StatusCode::unknown_codec);
}

}  // namespace
}  // namespace quern::testing
