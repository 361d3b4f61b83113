// Damaged and hostile streams: refused with a status that names the place, or decoded around with keep_going.
#include <set>

#include "tests/unit_pipeline/support.h"

namespace quern::testing {
namespace {

/// Status of decoding the whole stream; the array is left in `out`.
Status decode_into(std::span<const std::uint8_t> stream, Array& out, const Registry& registry,
                   const DecompressOptions& options = {}, DecompressReport* report = nullptr) {
  MemorySource source(stream);
  const auto result = decompress(source, out.target(), registry, {}, options);
  if (result.ok() && report != nullptr) *report = *result;
  return result.status();
}

DecompressOptions keep_going() {
  DecompressOptions options;
  options.keep_going = true;
  return options;
}

Array small_array() {
  Array a = smooth(DType::f32, shape_of({6, 20, 40}));
  spoil(a, 7.5f);
  return a;
}

Vector<std::uint8_t> small_stream(const ToyRegistry& toys) {
  CompressOptions options = with_bound(BoundKind::rel, 1e-2);
  options.fill_bits = {std::bit_cast<std::uint32_t>(7.5f)};
  options.metadata = {'{', '}'};
  return compress_ok(small_array(), options, toys.registry);
}

TEST(Damage, EverySingleBitFlip_IsRefused) {
  const ToyRegistry toys;
  const auto stream = small_stream(toys);
  Array out(DType::f32, shape_of({6, 20, 40}));
  ASSERT_TRUE(decode_into(stream, out, toys.registry).ok());
  for (std::size_t bit = 0; bit < stream.size() * 8; ++bit) {
    auto damaged = stream;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    const Status status = decode_into(damaged, out, toys.registry);
    ASSERT_FALSE(status.ok()) << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST(Damage, EveryTruncation_IsRefused) {
  const ToyRegistry toys;
  const auto stream = small_stream(toys);
  Array out(DType::f32, shape_of({6, 20, 40}));
  for (std::size_t n = 0; n < stream.size(); ++n) {
    const Status status = decode_into(std::span(stream).first(n), out, toys.registry);
    ASSERT_EQ(status.code(), StatusCode::truncated) << n << " bytes: " << status.text();
    PipeSource pipe({stream.data(), n});
    ASSERT_FALSE(decompress(pipe, out.target(), toys.registry, {}).ok());
  }
}

// Elements outside holes must be those of the undamaged stream, elements inside must be the fill value.
void expect_data_or_holes(const Array& good, const Array& got, const DecompressReport& report, std::uint64_t fill) {
  const std::size_t w = dtype_bytes(good.dtype);
  std::vector<bool> hole(static_cast<std::size_t>(good.shape.elems()), false);
  const auto& e = good.shape;
  for (const Hole& h : report.holes)
    for (std::uint64_t i = 0; i < h.extents[0]; ++i)
      for (std::uint64_t j = 0; j < h.extents[1]; ++j)
        for (std::uint64_t k = 0; k < h.extents[2]; ++k)
          hole[((h.begin[0] + i) * e[1] + h.begin[1] + j) * e[2] + h.begin[2] + k] = true;
  for (std::size_t i = 0; i < hole.size(); ++i) {
    const void* expected = hole[i] ? static_cast<const void*>(&fill) : good.bytes.data() + i * w;
    ASSERT_EQ(std::memcmp(got.bytes.data() + i * w, expected, w), 0) << "element " << i << (hole[i] ? ", a hole" : "");
  }
}

TEST(Damage, EverySingleByteFlip_KeepGoing_GivesDataOrHoles) {
  const ToyRegistry toys;
  const auto stream = small_stream(toys);
  Array good(DType::f32, shape_of({6, 20, 40}));
  ASSERT_TRUE(decode_into(stream, good, toys.registry).ok());
  MemorySource source(stream);
  const auto info = inspect(source, toys.registry);
  ASSERT_TRUE(info.ok());
  for (std::size_t at = info->header_bytes; at < stream.size(); ++at) {
    auto damaged = stream;
    damaged[at] ^= 0x10;
    Array got(DType::f32, good.shape);
    std::fill(got.bytes.begin(), got.bytes.end(), std::uint8_t{0xA5});
    DecompressReport report;
    const Status status = decode_into(damaged, got, toys.registry, keep_going(), &report);
    ASSERT_TRUE(status.ok()) << "byte " << at << ": " << status.text();
    SCOPED_TRACE("byte " + std::to_string(at));
    expect_data_or_holes(good, got, report, std::bit_cast<std::uint32_t>(7.5f));
    ASSERT_LE(report.holes.size(), info->chunks);
  }
}

struct LargeStream {
  ToyRegistry toys;
  Array array = smooth(DType::f64, shape_of({40, 70, 130}));
  Vector<std::uint8_t> bytes = compress_ok(array, with_bound(BoundKind::lossless), toys.registry);
  std::vector<std::size_t> offsets;  // of segments, and of the trailer

  LargeStream() {
    MemorySource source(bytes);
    const auto info = inspect(source, toys.registry);
    EXPECT_TRUE(info.ok() && info->segments > 3);
    std::size_t at = info->header_bytes;
    for (std::uint64_t s = 0; s <= info->segments; ++s) {
      offsets.push_back(at);
      std::uint32_t size = 0;
      std::memcpy(&size, bytes.data() + at, 4);
      at += size;
    }
  }
};

TEST(Damage, ChunkBytesChanged_ErrorNamesSegmentAndChunk) {
  LargeStream s;
  auto damaged = s.bytes;
  damaged[s.offsets[2] - 20] ^= 1;  // the last chunk of segment 1
  Array out(s.array.dtype, s.array.shape);
  const Status status = decode_into(damaged, out, s.toys.registry);
  EXPECT_EQ(status.code(), StatusCode::checksum_mismatch);
  EXPECT_EQ(status.first(), 1);
  // Slabs of 4 along axis 0, 5 x 5 chunks each: segments hold floor(64 / 25) = 2 slabs.
  EXPECT_EQ(status.second(), 99);
  EXPECT_EQ(status.text(), "segment 1, chunk 99 is damaged: its checksum does not match");
}

TEST(Damage, SameDamage_SameErrorForAnyThreads) {
  LargeStream s;
  auto damaged = s.bytes;
  damaged[s.offsets[2] - 20] ^= 1;
  damaged[s.offsets[3] - 20] ^= 1;
  for (const std::size_t threads : {1, 2, 4, 5}) {
    Array out(s.array.dtype, s.array.shape);
    MemorySource source(damaged);
    const auto result = decompress(source, out.target(), s.toys.registry, with_threads(threads));
    EXPECT_EQ(result.status().text(), "segment 1, chunk 99 is damaged: its checksum does not match");
  }
}

TEST(Damage, SegmentsSwapped_IsRefused) {
  LargeStream s;
  const Vector<std::uint8_t> first(s.bytes.begin() + s.offsets[0], s.bytes.begin() + s.offsets[1]);
  const Vector<std::uint8_t> second(s.bytes.begin() + s.offsets[1], s.bytes.begin() + s.offsets[2]);
  Vector<std::uint8_t> swapped(s.bytes.begin(), s.bytes.begin() + s.offsets[0]);
  swapped.insert(swapped.end(), second.begin(), second.end());
  swapped.insert(swapped.end(), first.begin(), first.end());
  swapped.insert(swapped.end(), s.bytes.begin() + s.offsets[2], s.bytes.end());
  Array out(s.array.dtype, s.array.shape);
  EXPECT_EQ(decode_into(swapped, out, s.toys.registry).code(), StatusCode::checksum_mismatch);
}

TEST(Damage, SegmentSizeDestroyed_KeepGoing_LosesThatSegmentOnly) {
  LargeStream s;
  auto damaged = s.bytes;
  for (std::size_t i = 0; i < 4; ++i) damaged[s.offsets[1] + i] ^= 0xFF;
  Array out(s.array.dtype, s.array.shape);
  DecompressReport report;
  ASSERT_TRUE(decode_into(damaged, out, s.toys.registry, keep_going(), &report).ok());
  EXPECT_EQ(report.holes.size(), 50u);
  std::set<std::uint64_t> segments;
  for (const Hole& hole : report.holes) segments.insert(hole.segment);
  EXPECT_EQ(segments, std::set<std::uint64_t>{1});
  expect_data_or_holes(s.array, out, report, UINT64_C(0x7FF8000000000000));
}

// Time steps appended to one file, read one after another where the source stands, as from a pipe.
struct AppendedFile {
  LargeStream one;
  Vector<std::uint8_t> bytes;

  AppendedFile() {
    for (int step = 0; step < 3; ++step) bytes.insert(bytes.end(), one.bytes.begin(), one.bytes.end());
  }
  std::size_t at(std::size_t step, std::size_t segment) const { return step * one.bytes.size() + one.offsets[segment]; }
  /// Decodes all three steps; holes of each step.
  std::array<Vector<Hole>, 3> decode() const {
    std::array<Vector<Hole>, 3> holes;
    MemorySource source(bytes);
    DecompressOptions options = keep_going();
    options.more_streams = true;
    for (std::size_t step = 0; step < 3; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      Array out(one.array.dtype, one.array.shape);
      const auto result = decompress(source, out.target(), one.toys.registry, {}, options);
      EXPECT_TRUE(result.ok()) << result.status().text();
      if (!result.ok()) return holes;
      expect_data_or_holes(one.array, out, *result, UINT64_C(0x7FF8000000000000));
      holes[step] = result->holes;
    }
    return holes;
  }
};

TEST(Damage, SegmentSizeDestroyedInALaterStream_KeepGoing_LosesThatSegmentOnly) {
  AppendedFile file;
  for (std::size_t i = 0; i < 4; ++i) file.bytes[file.at(1, 1) + i] ^= 0xFF;
  const auto holes = file.decode();
  EXPECT_TRUE(holes[0].empty());
  EXPECT_EQ(holes[1].size(), 50u);
  for (const Hole& hole : holes[1]) EXPECT_EQ(hole.segment, 1u);
  EXPECT_TRUE(holes[2].empty());
}

TEST(Damage, LastTrailerDestroyed_KeepGoing_OtherDamageIsStillListed) {
  AppendedFile file;
  file.bytes.back() ^= 1;                           // no stream's index can be reached any more
  file.bytes[2 * file.one.bytes.size() - 20] ^= 1;  // in the trailer of the second step
  file.bytes[file.at(1, 2) - 20] ^= 1;              // the last chunk of its segment 1
  const auto holes = file.decode();
  EXPECT_TRUE(holes[0].empty());
  ASSERT_EQ(holes[1].size(), 1u);
  EXPECT_EQ(holes[1][0].chunk, 99u);
  EXPECT_TRUE(holes[2].empty());
}

TEST(Damage, PipeCutShort_KeepGoing_GivesWhatWasThere) {
  LargeStream s;
  PipeSource pipe({s.bytes.data(), (s.offsets[1] + s.offsets[2]) / 2});
  Array out(s.array.dtype, s.array.shape);
  const auto result = decompress(pipe, out.target(), s.toys.registry, {}, keep_going());
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_LT(result->holes.front().chunk, 100u);
  EXPECT_GT(result->holes.front().chunk, 50u);
  expect_data_or_holes(s.array, out, *result, UINT64_C(0x7FF8000000000000));
}

TEST(Damage, BytesAfterTheStream_AreRefusedUnlessTheyBeginAStream) {
  const ToyRegistry toys;
  const auto stream = small_stream(toys);
  Array out(DType::f32, shape_of({6, 20, 40}));
  auto longer = stream;
  longer.push_back(0);
  EXPECT_EQ(decode_into(longer, out, toys.registry).code(), StatusCode::trailing_data);
  auto twice = stream;
  twice.insert(twice.end(), stream.begin(), stream.end());
  EXPECT_TRUE(decode_into(twice, out, toys.registry).ok());
}

TEST(Damage, RandomBytesAndSplices_NeverCrash) {
  const ToyRegistry toys;
  const auto stream = small_stream(toys);
  std::mt19937 rng(99);
  Array out(DType::f32, shape_of({6, 20, 40}));
  for (int round = 0; round < 3000; ++round) {
    auto mutant = stream;
    const std::size_t edits = 1 + rng() % 8;
    for (std::size_t e = 0; e < edits; ++e) {
      const std::size_t at = rng() % mutant.size();
      if (rng() % 2 == 0) {
        mutant[at] = static_cast<std::uint8_t>(rng());
      } else {
        mutant.erase(mutant.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    if (mutant == stream) continue;
    EXPECT_FALSE(decode_into(mutant, out, toys.registry).ok()) << "seed 99, round " << round;
    static_cast<void>(decode_into(mutant, out, toys.registry, keep_going()));
  }
}

TEST(Damage, HugeDeclaredSizes_MeetTheMemoryLimit) {
  // One chunk of 2^21 elements: the window that pulling needs is larger than the caller allows.
  const ToyRegistry toys({1, 1 << 15, 64});
  const Array a(DType::f32, shape_of({1 << 15, 64}));
  const auto stream = compress_ok(a, with_bound(BoundKind::abs, 1), toys.registry);
  Execution tight;
  tight.memory_limit = 4 << 20;
  MemorySource source(stream);
  const auto decoder = Decoder::open(source, toys.registry, tight);
  ASSERT_TRUE(decoder.ok());
  Vector<std::uint8_t> out(4000);
  const auto pulled = (*decoder)->pull(out);
  EXPECT_EQ(pulled.status().code(), StatusCode::memory_limit);
  EXPECT_GT(pulled.status().first(), 4 << 20) << "the message says how much is needed";
  Vector<std::uint8_t> sunk;
  VectorSink sink(sunk);
  EXPECT_EQ(compress(a.view(), with_bound(BoundKind::abs, 1), toys.registry, tight, sink).status().code(),
            StatusCode::memory_limit);
}

}  // namespace
}  // namespace quern::testing
