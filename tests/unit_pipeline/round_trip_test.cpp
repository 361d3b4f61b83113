// Arrays come back: shapes, types, bounds, special values, threads, pushes in odd pieces, sizes.
#include "tests/unit_pipeline/support.h"

namespace quern::testing {
namespace {

const std::vector<Vector<std::uint64_t>>& shapes() {
  static const std::vector<Vector<std::uint64_t>> all{{},
                                                      {0},
                                                      {1},
                                                      {5, 0, 3},
                                                      {1, 1, 1, 1},
                                                      {7},
                                                      {16},
                                                      {17},
                                                      {15},
                                                      {1009},
                                                      {2, 8, 16},
                                                      {3, 9, 17},
                                                      {1, 7, 15},
                                                      {40, 31, 37},
                                                      {37, 70, 130},
                                                      {5, 4, 3, 2, 11},
                                                      {2, 3, 2, 3, 2, 3, 2, 3},
                                                      {1, 1, 5000},
                                                      {1, 300, 40},
                                                      {2, 5, 3000},
                                                      {3000, 1, 1},
                                                      {9, 2100, 40},
                                                      {3, 17, 4200},
                                                      {200000}};
  return all;
}

constexpr std::array<DType, 12> kTypes{DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                                       DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};

TEST(RoundTrip, EveryTypeAndShape_Lossless_GivesTheSameBits) {
  const ToyRegistry toys;
  for (const DType dtype : kTypes)
    for (const auto& extents : shapes()) {
      const Shape shape = shape_of(extents);
      for (const Array& a : {smooth(dtype, shape), random_bits(dtype, shape, 7)}) {
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text());
        const auto stream = compress_ok(a, with_bound(BoundKind::lossless), toys.registry);
        EXPECT_TRUE(decompress_ok(stream, dtype, shape, toys.registry).bytes == a.bytes);
      }
    }
}

TEST(RoundTrip, RegistryWithoutCodecs_StoresTheValues) {
  const Registry none({});
  const Array a = smooth(DType::f32, shape_of({100, 333}));
  CompressReport report;
  const auto stream = compress_ok(a, with_bound(BoundKind::abs, 0.1), none, {}, &report);
  EXPECT_EQ(report.codec, "stored");
  EXPECT_EQ(report.raw_chunks, report.chunks);
  EXPECT_TRUE(decompress_ok(stream, a.dtype, a.shape, none).bytes == a.bytes);
}

void expect_within(const Array& a, const Array& b, double bound) {
  for (std::size_t i = 0; i < a.bytes.size(); i += 4) {
    float x = 0, y = 0;
    std::memcpy(&x, a.bytes.data() + i, 4);
    std::memcpy(&y, b.bytes.data() + i, 4);
    if (std::isfinite(x)) {
      ASSERT_LE(std::abs(static_cast<double>(x) - static_cast<double>(y)), bound) << "element " << i / 4;
    } else {
      ASSERT_EQ(std::memcmp(a.bytes.data() + i, b.bytes.data() + i, 4), 0) << "element " << i / 4;
    }
  }
}

TEST(RoundTrip, AbsoluteBound_WithSpecialValues_HoldsAndKeepsThem) {
  const ToyRegistry toys;
  for (const auto& extents : shapes()) {
    const Shape shape = shape_of(extents);
    SCOPED_TRACE(shape.text());
    Array a = smooth(DType::f32, shape);
    spoil(a, -999.0f);
    CompressOptions options = with_bound(BoundKind::abs, 0.05);
    options.fill_bits = {std::bit_cast<std::uint32_t>(-999.0f)};
    CompressReport report;
    const auto stream = compress_ok(a, options, toys.registry, {}, &report);
    const Array b = decompress_ok(stream, a.dtype, shape, toys.registry);
    expect_within(a, b, 0.05);
    for (std::size_t i = 0; i < a.bytes.size(); i += 4 * 211)
      EXPECT_EQ(std::memcmp(a.bytes.data() + i, b.bytes.data() + i, 4), 0) << "fill value at " << i / 4;
  }
}

TEST(RoundTrip, ChunksOfNothingButSpecialValues_TakeNoBytes) {
  const ToyRegistry toys;
  Array a = smooth(DType::f32, shape_of({8, 32, 64}));
  for (std::size_t i = 0; i < a.bytes.size() / 2; i += 4) {
    const std::uint32_t nan = 0x7FC12345;
    std::memcpy(a.bytes.data() + i, &nan, 4);
  }
  const auto half = compress_ok(a, with_bound(BoundKind::abs, 0.05), toys.registry);
  const auto whole = compress_ok(smooth(DType::f32, a.shape), with_bound(BoundKind::abs, 0.05), toys.registry);
  EXPECT_LT(half.size(), whole.size() * 65 / 100);
  const Array b = decompress_ok(half, a.dtype, a.shape, toys.registry);
  expect_within(a, b, 0.05);
}

TEST(RoundTrip, ThreadsAndMemoryLimit_DoNotChangeTheBytes) {
  const ToyRegistry toys;
  Array a = smooth(DType::f32, shape_of({150, 61, 67}));
  spoil(a, 1e20f);
  const CompressOptions options = with_bound(BoundKind::rel, 1e-3);
  const auto one = compress_ok(a, options, toys.registry);
  for (const std::size_t threads : {2, 4, 7}) {
    EXPECT_TRUE(compress_ok(a, options, toys.registry, with_threads(threads)) == one);
    Execution tight = with_threads(threads);
    tight.memory_limit = 10 << 20;
    EXPECT_TRUE(compress_ok(a, options, toys.registry, tight) == one);
    EXPECT_TRUE(decompress_ok(one, a.dtype, a.shape, toys.registry, tight).bytes ==
                decompress_ok(one, a.dtype, a.shape, toys.registry).bytes);
  }
}

TEST(RoundTrip, MasksByLevels_ComeBackWhateverTheThreads) {
  const ToyRegistry toys;
  Array a = smooth(DType::f32, shape_of({150, 61, 67}));
  spoil(a, 1e20f);
  CompressOptions options = with_bound(BoundKind::abs, 0.05);
  options.fill_bits = {std::bit_cast<std::uint32_t>(1e20f)};
  const auto levels = compress_ok(a, options, toys.registry);  // the toy codec is one for throughput
  options.settings = {{"mask", "1"}};
  const auto decisions = compress_ok(a, options, toys.registry);
  options.settings = {{"mask", "2"}};
  EXPECT_TRUE(compress_ok(a, options, toys.registry) == levels);
  EXPECT_FALSE(levels == decisions);
  EXPECT_TRUE(decompress_ok(levels, a.dtype, a.shape, toys.registry).bytes ==
              decompress_ok(decisions, a.dtype, a.shape, toys.registry).bytes);
  for (const std::size_t threads : {2, 5}) {
    EXPECT_TRUE(compress_ok(a, options, toys.registry, with_threads(threads)) == levels);
    EXPECT_TRUE(decompress_ok(levels, a.dtype, a.shape, toys.registry, with_threads(threads)).bytes ==
                decompress_ok(decisions, a.dtype, a.shape, toys.registry).bytes);
  }
  options.settings = {{"mask", "3"}};
  Vector<std::uint8_t> out;
  VectorSink sink(out);
  EXPECT_EQ(compress(a.view(), options, toys.registry, {}, sink).status().code(), StatusCode::invalid_argument);
}

TEST(RoundTrip, PushInOddPieces_EqualsOneShot) {
  const ToyRegistry toys;
  for (const auto& extents : shapes()) {
    const Shape shape = shape_of(extents);
    SCOPED_TRACE(shape.text());
    const Array a = smooth(DType::f32, shape);
    const CompressOptions options = with_bound(BoundKind::abs, 0.01);
    const auto expected = compress_ok(a, options, toys.registry);
    std::mt19937 rng(3);
    Vector<std::uint8_t> out;
    VectorSink sink(out);
    auto encoder = Encoder::create(a.dtype, shape, options, toys.registry, with_threads(2), sink);
    ASSERT_TRUE(encoder.ok()) << encoder.status().text();
    for (std::size_t at = 0; at < a.bytes.size();) {
      const std::size_t n = std::min<std::size_t>(4 * (rng() % 700), a.bytes.size() - at);
      const Status pushed = (*encoder)->push({a.bytes.data() + at, n});
      ASSERT_TRUE(pushed.ok()) << pushed.text();
      at += n;
    }
    const auto report = (*encoder)->finish();
    ASSERT_TRUE(report.ok()) << report.status().text();
    EXPECT_TRUE(out == expected);
  }
}

TEST(RoundTrip, PullInOddPieces_FromAPipe_EqualsOneShot) {
  const ToyRegistry toys;
  for (const auto& extents : shapes()) {
    const Shape shape = shape_of(extents);
    SCOPED_TRACE(shape.text());
    Array a = smooth(DType::f32, shape);
    spoil(a, 3.0f);
    const auto stream = compress_ok(a, with_bound(BoundKind::abs, 0.01), toys.registry);
    const Array expected = decompress_ok(stream, a.dtype, shape, toys.registry);
    std::mt19937 rng(5);
    PipeSource source(stream);
    auto decoder = Decoder::open(source, toys.registry, with_threads(3));
    ASSERT_TRUE(decoder.ok()) << decoder.status().text();
    Vector<std::uint8_t> got;
    while (true) {
      Vector<std::uint8_t> piece(4 * (1 + rng() % 3000));
      const auto n = (*decoder)->pull(piece);
      ASSERT_TRUE(n.ok()) << n.status().text();
      if (*n == 0) break;
      got.insert(got.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*n));
    }
    EXPECT_TRUE(got == expected.bytes);
  }
}

TEST(RoundTrip, NoInput_MakesAStreamLargerThanPromised) {
  const ToyRegistry plain;
  const ToyRegistry wasteful({1, 1, 3}, 5000);  // tiny chunks, huge parameters
  for (const ToyRegistry* toys : {&plain, &wasteful})
    for (const DType dtype : kTypes)
      for (const auto& extents : shapes()) {
        const Shape shape = shape_of(extents);
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + shape.text());
        Array a = random_bits(dtype, shape, 11);
        CompressOptions options = with_bound(is_float(dtype) ? BoundKind::abs : BoundKind::lossless, 1e-30);
        options.fill_bits.assign(8, 0x11);
        options.metadata.assign(300, 0x42);
        const auto stream = compress_ok(a, options, toys->registry);
        EXPECT_LE(stream.size(), max_stream_bytes(dtype, shape, options.metadata.size()).value());
        const Array b = decompress_ok(stream, dtype, shape, toys->registry);
        EXPECT_TRUE(dtype == DType::f32 || dtype == DType::f64 || a.bytes == b.bytes);
      }
}

// Chunks of three columns are small, and there are many: their tables take more than promise 5 grants values that do
// not compress. Values that do must not be stored for that.
TEST(RoundTrip, NarrowArray_IsStoredOnlyIfItDoesNotCompress) {
  const ToyRegistry toys;
  const Shape shape = shape_of({5000, 3});
  const CompressOptions options = with_bound(BoundKind::abs, 0.01);
  CompressReport report;
  const Array good = smooth(DType::f32, shape);
  const auto stream = compress_ok(good, options, toys.registry, with_threads(1), &report);
  EXPECT_EQ(report.codec, "lorenzo");
  EXPECT_GT(report.chunks, 64u);
  EXPECT_LT(2 * stream.size(), good.bytes.size());
  expect_within(good, decompress_ok(stream, good.dtype, shape, toys.registry), 0.01);
  EXPECT_TRUE(compress_ok(good, options, toys.registry, with_threads(3)) == stream);

  Vector<std::uint8_t> pushed;
  VectorSink sink(pushed);
  auto encoder = Encoder::create(good.dtype, shape, options, toys.registry, with_threads(2), sink);
  ASSERT_TRUE(encoder.ok()) << encoder.status().text();
  for (std::size_t at = 0; at < good.bytes.size(); at += 6000) {
    const Status status = (*encoder)->push({good.bytes.data() + at, 6000});
    ASSERT_TRUE(status.ok()) << status.text();
  }
  ASSERT_TRUE((*encoder)->finish().ok());
  EXPECT_TRUE(pushed == stream);

  const Array bad = random_bits(DType::f32, shape, 13);
  EXPECT_LE(compress_ok(bad, options, toys.registry, {}, &report).size(), max_stream_bytes(bad.dtype, shape).value());
  EXPECT_EQ(report.codec, "stored");
}

// The test vector of docs/format.md.
Vector<std::uint8_t> specified_stream() {
  const std::string hex =
      "8951524e580d0a0a2b0000000001000010010300000101000100010103010103000000fe2ac19264"
      "b0a32b1800000000ffff3b731da5cadd010203b86cbdf2045536cc1801000000000000005c000000"
      "00000000699d00b751454ea8";
  Vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

TEST(RoundTrip, SpecifiedStream_Decodes) {
  const Array a = decompress_ok(specified_stream(), DType::u8, shape_of({3}), Registry({}));
  EXPECT_EQ(a.bytes, (Vector<std::uint8_t>{1, 2, 3}));
}

TEST(RoundTrip, SpecifiedStream_IsWhatIsWrittenToday) {
  Array a(DType::u8, shape_of({3}));
  a.bytes = {1, 2, 3};
  auto written = compress_ok(a, with_bound(BoundKind::lossless), Registry({}));
  auto expected = specified_stream();
  ASSERT_EQ(written.size(), expected.size());
  // The writer's version, and the checksums that depend on it: header, head check, segment, trailer.
  for (const auto& [at, count] : {std::pair{23, 3}, {35, 8}, {52, 4}, {59, 8}, {84, 4}})
    for (int k = at; k < at + count; ++k) written[static_cast<std::size_t>(k)] = expected[static_cast<std::size_t>(k)];
  EXPECT_EQ(written, expected);
}

TEST(RoundTrip, SmallField_PaysLittleForTheContainer) {
  const ToyRegistry toys({1, 64, 200});
  const Array a = smooth(DType::f32, shape_of({100, 200}));
  CompressOptions options = with_bound(BoundKind::abs, 0.01);
  Vector<std::uint8_t> out;
  const auto stream = compress_ok(a, options, toys.registry);
  MemorySource source(stream);
  const auto info = inspect(source, toys.registry);
  ASSERT_TRUE(info.ok());
  ASSERT_EQ(info->segments, 1u);
  // header, trailer (24 + size), segment (size 4, mask size 1, head check 4, checksum 8, 4 a chunk)
  EXPECT_LE(info->header_bytes + 24 + 3 + 17 + 4 * info->chunks, 120u);
}

}  // namespace
}  // namespace quern::testing
