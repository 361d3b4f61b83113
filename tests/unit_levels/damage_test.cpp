// Damage and hostile bytes where a coarse level is read in part: an error or right values, never other values.
#include "libcompress/format/frame/checksum.h"
#include "libcompress/format/frame/trailer.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/grid/level_table.h"
#include "libcompress/format/grid/segment.h"
#include "tests/support/instrumented.h"
#include "tests/unit_levels/support.h"

namespace quern::testing {
namespace {

/// Large enough for sections of its own at levels 0 and 1, and several chunks.
struct Example {
  Shape shape = shape_of({300000});
  Bytes values = field(DType::i16, shape, 31);
  Bytes stream = compress_in("levels", DType::i16, shape, values, 0.5);
};

TEST(Levels_Damage, EveryBitOfWhatIsRead_IsSeen) {
  const Example e;
  ASSERT_GT(info_of(e.stream).chunks, 1u);
  WatchedSource watched(e.stream);
  Bytes wanted;
  ASSERT_TRUE(decode_at(watched, 3, wanted).ok());
  ASSERT_LT(watched.bytes_read() * 3, e.stream.size());
  Bytes damaged = e.stream;
  std::size_t tried = 0;
  for (std::size_t byte = 0; byte < damaged.size(); ++byte) {
    const bool was_read = watched.was_read(byte);
    // Of what is not read a sample: it makes no difference.
    if (!was_read && byte % 997 != 0) continue;
    for (unsigned bit = 0; bit < 8; bit += was_read ? kInstrumented ? 7 : 1 : 3) {
      damaged[byte] ^= static_cast<std::uint8_t>(1u << bit);
      MemorySource source(damaged);
      Bytes out;
      const auto done = decode_at(source, 3, out);
      if (was_read) {
        ASSERT_FALSE(done.ok()) << "bit " << bit << " of byte " << byte;
      } else {
        ASSERT_TRUE(done.ok()) << done.status().text();
        ASSERT_TRUE(out == wanted);
      }
      // From a pipe everything is read and everything is seen.
      if (byte % 97 == 0) {
        PipeSource pipe(damaged);
        ASSERT_FALSE(decode_at(pipe, 3, out).ok());
      }
      damaged[byte] ^= static_cast<std::uint8_t>(1u << bit);
      ++tried;
    }
  }
  EXPECT_GT(tried, 1000u);
}

TEST(Levels_Damage, ChunksExchanged_AreSeen) {
  // The beginnings of two chunks exchanged: right bytes in the wrong place.
  const Example e;
  const auto read = [&] {
    MemorySource source(e.stream);
    return *read_header(source);
  }();
  const SegmentLayout layout(read.header.grid, read.header.dtype, read.header.has_level_tables());
  ASSERT_TRUE(layout.has_level_tables());
  ParsedSegment parsed;
  const auto rest = std::span<const std::uint8_t>(e.stream).subspan(static_cast<std::size_t>(read.bytes));
  const auto size = static_cast<std::size_t>(*read_segment_size(rest, layout, 0));
  parse_segment(rest.first(size), layout, {read.header.checksum, 0}, parsed);
  ASSERT_TRUE(parsed.status.ok());
  std::array<ChunkBeginning, kMaxSegmentChunks> beginnings;
  ASSERT_TRUE(read_level_table(parsed, 0, 1, beginnings).ok());
  Bytes damaged = e.stream;
  const std::size_t first = static_cast<std::size_t>(read.bytes + parsed.chunks_at);
  const std::size_t second = first + static_cast<std::size_t>(parsed.sizes[0]);
  const auto most = static_cast<std::ptrdiff_t>(std::min(beginnings[0].bytes, beginnings[1].bytes));
  ASSERT_GT(most, 100);
  std::swap_ranges(damaged.begin() + static_cast<std::ptrdiff_t>(first),
                   damaged.begin() + static_cast<std::ptrdiff_t>(first) + most,
                   damaged.begin() + static_cast<std::ptrdiff_t>(second));
  MemorySource source(damaged);
  Bytes out;
  EXPECT_EQ(decode_at(source, 1, out).status().code(), StatusCode::checksum_mismatch);
}

TEST(Levels_Damage, EveryTruncation_IsRefused_OrLeftToKeepGoing) {
  const Example e;
  MemorySource whole(e.stream);
  Bytes wanted;
  ASSERT_TRUE(decode_at(whole, 2, wanted).ok());
  const std::size_t step = kInstrumented ? 4001 : 301;
  for (std::size_t n = 0; n < e.stream.size(); n += n < 300 ? 1 : step) {
    MemorySource source(std::span(e.stream).first(n));
    Bytes out;
    const auto done = decode_at(source, 2, out);
    ASSERT_EQ(done.status().code(), StatusCode::truncated) << n << " bytes: " << done.status().text();
  }
  // What is there of the last chunk is enough for its coarse levels.
  MemorySource source(std::span(e.stream).first(e.stream.size() - 200));
  Bytes out;
  const auto done = decode_at(source, 2, out, 1, true);
  ASSERT_TRUE(done.ok()) << done.status().text();
  EXPECT_TRUE(done->holes.empty());
  EXPECT_TRUE(out == wanted);
}

TEST(Levels_Damage, KeepGoing_LosesTheDamagedChunkAlone) {
  const Example e;
  MemorySource whole(e.stream);
  Bytes wanted;
  ASSERT_TRUE(decode_at(whole, 2, wanted).ok());
  for (const std::size_t byte : {std::size_t{400}, e.stream.size() / 2}) {
    Bytes damaged = e.stream;
    // The beginning of some chunk: the first byte read from there on.
    WatchedSource watched(e.stream);
    Bytes out;
    ASSERT_TRUE(decode_at(watched, 2, out).ok());
    std::size_t at = byte;
    while (!watched.was_read(at)) ++at;
    damaged[at] ^= 0x10;
    MemorySource source(damaged);
    const auto done = decode_at(source, 2, out, 2, true);
    ASSERT_TRUE(done.ok()) << done.status().text();
    ASSERT_EQ(done->holes.size(), 1u);
    const Hole& hole = done->holes[0];
    const std::uint64_t begin = hole.begin[2] / 4;
    const std::uint64_t end = (hole.begin[2] + hole.extents[2] + 3) / 4;
    for (std::uint64_t i = 0; i < wanted.size() / 2; ++i) {
      const std::uint16_t expected =
          i >= begin && i < end ? std::uint16_t{0} : static_cast<std::uint16_t>(wanted[2 * i] | wanted[2 * i + 1] << 8);
      ASSERT_EQ(static_cast<std::uint16_t>(out[2 * i] | out[2 * i + 1] << 8), expected) << i;
    }
  }
}

/// A stream with one segment whose level table is replaced, all checks made anew.
Bytes with_level_table(const Bytes& stream, const Bytes& table) {
  MemorySource source(stream);
  const ReadHeader read = *read_header(source);
  const SegmentLayout layout(read.header.grid, read.header.dtype, true);
  ParsedSegment parsed;
  const auto rest = std::span<const std::uint8_t>(stream).subspan(static_cast<std::size_t>(read.bytes));
  const auto size = static_cast<std::size_t>(*read_segment_size(rest, layout, 0));
  parse_segment(rest.first(size), layout, {read.header.checksum, 0}, parsed);
  EXPECT_TRUE(parsed.status.ok());
  Bytes segment;
  assemble_segment(layout, {read.header.checksum, 0}, parsed.mask, {parsed.chunks.data(), parsed.count}, segment,
                   table);
  Bytes out(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(read.bytes));
  out.insert(out.end(), segment.begin(), segment.end());
  TrailerBuilder trailer;
  trailer.add(segment.size());
  const auto end = trailer.finish(read.header.checksum, out.size());
  out.insert(out.end(), end.begin(), end.end());
  return out;
}

TEST(Levels_Damage, HostileLevelTables_GiveRightValuesOrAnError) {
  const Shape shape = shape_of({100000});
  const Bytes stream = compress_in("levels", DType::i16, shape, field(DType::i16, shape, 32), 0.5);
  ASSERT_EQ(info_of(stream).chunks, 1u);
  const Bytes wanted = decode_ok(stream, 2);
  const auto chunk = [&] {
    MemorySource source(stream);
    const ReadHeader read = *read_header(source);
    const SegmentLayout layout(read.header.grid, read.header.dtype, true);
    ParsedSegment parsed;
    const auto rest = std::span<const std::uint8_t>(stream).subspan(static_cast<std::size_t>(read.bytes));
    parse_segment(rest.first(static_cast<std::size_t>(*read_segment_size(rest, layout, 0))), layout,
                  {read.header.checksum, 0}, parsed);
    return Bytes(parsed.chunks[0].bytes.begin(), parsed.chunks[0].bytes.end());
  }();
  const auto table_of = [&](std::initializer_list<std::size_t> cuts, bool wrong_check) {
    ChunkPiece piece{ChunkForm::coded, chunk, 0};
    LevelCuts levels;
    for (const std::size_t cut : cuts) levels.bytes[levels.count++] = cut;
    Bytes table;
    put_level_table({&piece, 1}, {&levels, 1}, table);
    if (wrong_check) table.back() ^= 1;
    return table;
  };
  const auto decode = [&](const Bytes& table, Bytes& out) {
    const Bytes hostile = with_level_table(stream, table);
    MemorySource source(hostile);
    const Status in_part = decode_at(source, 2, out).status();
    // The array itself does not depend on the table.
    MemorySource again(hostile);
    Bytes all;
    EXPECT_TRUE(decode_at(again, 0, all).ok());
    return in_part;
  };
  Bytes out;
  // Beginnings that are too short for the level, down to a single byte; and one that is longer than needed.
  for (const std::size_t cut : {std::size_t{1}, std::size_t{2}, std::size_t{30}, chunk.size() / 20}) {
    EXPECT_EQ(decode(table_of({cut, chunk.size() - 1}, false), out).code(), StatusCode::corrupt) << cut;
  }
  EXPECT_TRUE(decode(table_of({chunk.size() - 2, chunk.size() - 1}, false), out).ok());
  EXPECT_TRUE(out == wanted);
  EXPECT_TRUE(decode(table_of({}, false), out).ok());
  EXPECT_TRUE(out == wanted);
  EXPECT_EQ(decode(table_of({}, true), out).code(), StatusCode::checksum_mismatch);
  // Tables that break a rule are not used: the segment is read as a whole.
  for (const Bytes& table : {Bytes{0}, Bytes{1, 0, 1, 2, 3, 4}, Bytes{17}, Bytes{0, 1, 2, 3, 4, 5},
                             Bytes{1, 0xFF, 0xFF, 0xFF, 0x7F, 1, 2, 3, 4}}) {
    EXPECT_TRUE(decode(table, out).ok());
    EXPECT_TRUE(out == wanted);
  }
}

TEST(Levels_Damage, TheFeatureWithACodecWithoutLevels_IsRefused) {
  const Shape shape = shape_of({300, 400});
  const Bytes stream = compress_in("raster", DType::f32, shape, field(DType::f32, shape, 33), 1e-3);
  MemorySource source(stream);
  Header header = read_header(source)->header;
  header.must_understand = kLevelTables;
  const Bytes bytes = *serialize_header(header);
  Bytes other(bytes.begin(), bytes.end());
  other.insert(other.end(), stream.begin() + static_cast<std::ptrdiff_t>(bytes.size()), stream.end());
  MemorySource again(other);
  Bytes out;
  EXPECT_EQ(decode_at(again, 0, out).status().code(), StatusCode::corrupt);
}

TEST(Levels_Damage, AnyByteChangedUnderNewChecksums_IsSafe) {
  // Beyond checksums the codec itself refuses or gives values; the sanitizers watch.
  const Shape shape = shape_of({70000});
  const Bytes stream = compress_in("levels", DType::i16, shape, field(DType::i16, shape, 34), 0.5);
  MemorySource source(stream);
  const ReadHeader read = *read_header(source);
  const SegmentLayout layout(read.header.grid, read.header.dtype, true);
  ParsedSegment parsed;
  const auto rest = std::span<const std::uint8_t>(stream).subspan(static_cast<std::size_t>(read.bytes));
  parse_segment(rest.first(static_cast<std::size_t>(*read_segment_size(rest, layout, 0))), layout,
                {read.header.checksum, 0}, parsed);
  ASSERT_TRUE(parsed.status.ok());
  std::mt19937 random(35);
  for (int round = 0; round < (kInstrumented ? 40 : 400); ++round) {
    Bytes chunk(parsed.chunks[0].bytes.begin(), parsed.chunks[0].bytes.end());
    chunk[round % 2 == 0 ? random() % 400 % chunk.size() : random() % chunk.size()] ^=
        static_cast<std::uint8_t>(1 + random() % 255);
    ChunkPiece piece{ChunkForm::coded, chunk, chunk_check(chunk)};
    Bytes segment;
    Bytes table;
    LevelCuts cuts;
    cuts.bytes = {chunk.size() / 3};
    cuts.count = round % 3 == 0 ? 1 : 0;
    put_level_table({&piece, 1}, {&cuts, 1}, table);
    assemble_segment(layout, {read.header.checksum, 0}, parsed.mask, {&piece, 1}, segment, table);
    Bytes out(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(read.bytes));
    out.insert(out.end(), segment.begin(), segment.end());
    TrailerBuilder trailer;
    trailer.add(segment.size());
    const auto end = trailer.finish(read.header.checksum, out.size());
    out.insert(out.end(), end.begin(), end.end());
    for (const unsigned level : {1u, 4u, 16u}) {
      MemorySource hostile(out);
      Bytes values;
      static_cast<void>(decode_at(hostile, level, values, 1, false, UINT64_C(64) << 20));
    }
  }
}

}  // namespace
}  // namespace quern::testing
