// Segments and trailers as bytes.
#include "libcompress/format/grid/segment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "libcompress/format/frame/trailer.h"
#include "libcompress/format/grid/level_table.h"
#include "libcompress/format/writer.h"

namespace quern {
namespace {

using Bytes = Vector<std::uint8_t>;

/// Parts of a segment and a trailer where only constant evaluation is possible, as on a device.
constexpr SegmentLayout kLayout({{1, 1, 40}, {1, 1, 10}}, DType::f32);
constexpr bool segment_works_in_constants() {
  std::array<std::uint8_t, 64> room{};
  ByteWriter out(room);
  const std::uint64_t size = segment_bytes(kLayout, 4, 3, 50);
  put_segment_start(out, kLayout, size, 3);
  put_table_entry(out, kLayout, {ChunkForm::coded, 0x1234, 5});
  put_table_entry(out, kLayout, {ChunkForm::masked, 0, 0});
  put_table_entry(out, kLayout, {ChunkForm::raw, 0x5678, 40});
  put_table_entry(out, kLayout, {ChunkForm::coded, 0x9ABC, 40});
  std::uint64_t read_size = 0;
  SegmentHead head;
  if (!read_segment_size(room, kLayout, 0, read_size).ok() || read_size != size) return false;
  if (!read_segment_head(room, kLayout, 0, head).ok() || head.mask_bytes != 3 || head.mask_at != out.size())
    return false;
  const auto table = std::span<const std::uint8_t>(room).subspan(static_cast<std::size_t>(head.table_at));
  std::array<TableEntry, 4> entries;
  for (std::uint64_t k = 0; k < 3; ++k)
    if (!read_table_entry(table, kLayout, 0, k, entries[k]).ok()) return false;
  const Fault fault = read_table_entry(table, kLayout, 0, 3, entries[3]);
  return entries[0].form == ChunkForm::coded && entries[0].bytes == 5 && entries[0].check == 0x1234 &&
         entries[1].form == ChunkForm::masked && entries[1].bytes == 0 && entries[2].form == ChunkForm::raw &&
         entries[2].bytes == 40 && fault.what == FormatFault::chunk_size_impossible && fault.second == 3;
}
static_assert(segment_works_in_constants());

constexpr bool trailer_works_in_constants() {
  std::array<std::uint8_t, 40> room{};
  ByteWriter out(room);
  out.varint(100);
  out.varint(300);
  put_footer_sizes(out, 3, 490);
  put_footer_end(out, UINT64_C(0x1122334455667788));
  Footer footer;
  const std::span<const std::uint8_t> trailer(room.data(), out.size());
  if (!read_footer(trailer, footer).ok() || footer.check != 0x55667788 || footer.stream_bytes != 517) return false;
  IndexWalk walk(trailer.first(3), footer, 90);
  const bool offsets = walk.next() == 190 && walk.next() == 490;
  walk.finish();
  return offsets && walk.fault().ok() && check_index_bytes(footer, trailer.size(), 2).ok();
}
static_assert(trailer_works_in_constants());

struct Example {
  SegmentLayout layout{ChunkGrid{{1, 1, 40}, {1, 1, 10}}, DType::f32};
  SegmentPlace place{0x1122334455667788, 0};
  Bytes mask{7, 7, 7};
  Bytes coded{1, 2, 3, 4, 5};
  Bytes raw = Bytes(40, 0xCC);
  Bytes bytes;

  Example() {
    const std::array<ChunkPiece, 4> pieces{
        ChunkPiece{ChunkForm::coded, coded, chunk_check(coded)}, ChunkPiece{ChunkForm::masked, {}, chunk_check({})},
        ChunkPiece{ChunkForm::raw, raw, chunk_check(raw)}, ChunkPiece{ChunkForm::coded, coded, chunk_check(coded)}};
    assemble_segment(layout, place, mask, pieces, bytes);
  }
  ParsedSegment parse(std::span<const std::uint8_t> from) const {
    ParsedSegment parsed;
    parse_segment(from, layout, place, parsed);
    return parsed;
  }
};

TEST(Segment, AllForms_ComeBack) {
  const Example e;
  EXPECT_EQ(e.bytes.size(), segment_framing_bytes(e.layout, 4) + 3 + 5 + 40 + 5);
  EXPECT_EQ(segment_framing_bytes(e.layout, 4), 4u + 1 + 4 * 4 + 4 + 8);
  EXPECT_EQ(*read_segment_size(e.bytes, e.layout, 0), e.bytes.size());
  const ParsedSegment parsed = e.parse(e.bytes);
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.text();
  EXPECT_TRUE(std::equal(parsed.mask.begin(), parsed.mask.end(), e.mask.begin(), e.mask.end()));
  EXPECT_EQ(parsed.chunks[0].form, ChunkForm::coded);
  EXPECT_EQ(parsed.chunks[1].form, ChunkForm::masked);
  EXPECT_EQ(parsed.chunks[2].form, ChunkForm::raw);
  EXPECT_EQ(parsed.chunks[2].bytes.size(), 40u);
  EXPECT_TRUE(std::equal(e.coded.begin(), e.coded.end(), parsed.chunks[3].bytes.begin(), parsed.chunks[3].bytes.end()));
}

TEST(Segment, EveryBitFlip_IsSeen) {
  const Example e;
  for (std::size_t bit = 0; bit < e.bytes.size() * 8; ++bit) {
    Bytes damaged = e.bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    EXPECT_FALSE(e.parse(damaged).status.ok()) << "bit " << bit;
  }
}

TEST(Segment, DamagedChunk_IsNamedAndTheOthersAreTrusted) {
  const Example e;
  Bytes damaged = e.bytes;
  damaged[damaged.size() - 8 - 5 - 20] ^= 0x40;  // inside the raw chunk
  const ParsedSegment parsed = e.parse(damaged);
  EXPECT_EQ(parsed.status.code(), StatusCode::checksum_mismatch);
  EXPECT_EQ(parsed.status.second(), 2);
  EXPECT_TRUE(parsed.head_intact);
  for (const std::size_t k : {0, 1, 3}) EXPECT_TRUE(parsed.chunk_status[k].ok());
  EXPECT_FALSE(parsed.chunk_status[2].ok());
}

TEST(Segment, EveryTruncation_IsSeenAndWholeChunksAreKept) {
  const Example e;
  for (std::size_t n = 0; n < e.bytes.size(); ++n) {
    const ParsedSegment parsed = e.parse(std::span(e.bytes).first(n));
    EXPECT_EQ(parsed.status.code(), StatusCode::truncated) << n << " bytes: " << parsed.status.text();
  }
  const ParsedSegment parsed = e.parse(std::span(e.bytes).first(e.bytes.size() - 8 - 3));
  EXPECT_TRUE(parsed.chunk_status[2].ok());
  EXPECT_FALSE(parsed.chunk_status[3].ok());
}

TEST(Segment, OtherPlaceOrStream_IsRefused) {
  const Example e;
  ParsedSegment parsed;
  parse_segment(e.bytes, e.layout, {e.place.header_checksum + 1, 0}, parsed);
  EXPECT_EQ(parsed.status.code(), StatusCode::checksum_mismatch);
}

TEST(Segment, ImpossibleSizes_AreRefusedBeforeReading) {
  const Example e;
  for (const std::uint32_t size :
       {0u, 32u, 0xFFFFFFFFu, static_cast<std::uint32_t>(max_segment_bytes(e.layout, 0)) + 1}) {
    Bytes bytes = e.bytes;
    for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::uint8_t>(size >> (8 * i));
    EXPECT_EQ(read_segment_size(bytes, e.layout, 0).status().code(), StatusCode::corrupt);
  }
}

TEST(Segment, LargeChunks_UseWideFields) {
  const SegmentLayout small(ChunkGrid{{1, 1, 1 << 20}, {1, 1, 16383}}, DType::f32);
  const SegmentLayout large(ChunkGrid{{1, 1, 1 << 20}, {1, 1, 16384}}, DType::f32);
  EXPECT_EQ(segment_framing_bytes(small, 1) - segment_framing_bytes(small, 0), 4u);
  EXPECT_EQ(segment_framing_bytes(large, 1) - segment_framing_bytes(large, 0), 6u);
  const SegmentLayout huge(ChunkGrid{{1, 1, UINT64_C(1) << 40}, {1, 1, 1 << 26}}, DType::f64);
  EXPECT_EQ(segment_size_width(large), 4u);
  EXPECT_EQ(segment_size_width(huge), 8u);
}

TEST(Trailer, Offsets_ComeBack) {
  TrailerBuilder builder;
  for (const std::uint64_t size : {100, 70000, 5}) builder.add(size);
  const Bytes trailer = builder.finish(77, 90 + 100 + 70000 + 5);
  EXPECT_EQ(trailer.size(), builder.trailer_bytes());
  const auto footer = parse_footer(trailer);
  ASSERT_TRUE(footer.ok());
  EXPECT_EQ(footer->stream_bytes, 90 + 100 + 70000 + 5 + trailer.size());
  const auto offsets = parse_trailer(trailer, 77, 90, 3);
  ASSERT_TRUE(offsets.ok()) << offsets.status().text();
  EXPECT_EQ(*offsets, (Vector<std::uint64_t>{90, 190, 70190, 70195}));
}

TEST(IndexWalk, SizesThatWrapAround_AreAboveTheStream) {
  const Footer footer{20, UINT64_MAX, 0};
  Bytes index;
  Writer w(index);
  w.varint(UINT64_MAX - 100);
  w.varint(UINT64_MAX - 100);
  IndexWalk walk(index, footer, 90);
  walk.next();
  EXPECT_TRUE(walk.fault().ok());
  walk.next();
  EXPECT_EQ(walk.fault().what, FormatFault::index_above_stream);
}

TEST(Trailer, EveryBitFlipAndTruncation_IsRefused) {
  TrailerBuilder builder;
  for (const std::uint64_t size : {100, 70000, 5}) builder.add(size);
  const Bytes trailer = builder.finish(77, 70195);
  for (std::size_t bit = 0; bit < trailer.size() * 8; ++bit) {
    Bytes damaged = trailer;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    EXPECT_FALSE(parse_trailer(damaged, 77, 90, 3).ok()) << "bit " << bit;
  }
  for (std::size_t n = 0; n < trailer.size(); ++n)
    EXPECT_FALSE(parse_trailer(std::span(trailer).last(n), 77, 90, 3).ok());
  EXPECT_FALSE(parse_trailer(trailer, 78, 90, 3).ok());
  EXPECT_FALSE(parse_trailer(trailer, 77, 91, 3).ok());
  EXPECT_FALSE(parse_trailer(trailer, 77, 90, 4).ok());
}

/// A segment with a level table: two beginnings of the first chunk, the others as a whole.
struct LevelsExample {
  SegmentLayout layout{ChunkGrid{{1, 1, 40}, {1, 1, 10}}, DType::f32, true};
  SegmentPlace place{0x1122334455667788, 0};
  Bytes mask{7, 7, 7};
  Bytes coded = Bytes(30, 0xAB);
  Bytes raw = Bytes(40, 0xCC);
  std::array<ChunkPiece, 4> pieces{
      ChunkPiece{ChunkForm::coded, coded, chunk_check(coded)}, ChunkPiece{ChunkForm::masked, {}, chunk_check({})},
      ChunkPiece{ChunkForm::raw, raw, chunk_check(raw)}, ChunkPiece{ChunkForm::coded, coded, chunk_check(coded)}};
  std::array<LevelCuts, 4> cuts{LevelCuts{2, {5, 12}}, LevelCuts{}, LevelCuts{}, LevelCuts{}};
  Bytes table;
  Bytes bytes;

  LevelsExample() {
    put_level_table(pieces, cuts, table);
    assemble(table);
  }
  void assemble(const Bytes& level_table) { assemble_segment(layout, place, mask, pieces, bytes, level_table); }
  ParsedSegment parse(std::span<const std::uint8_t> from) const {
    ParsedSegment parsed;
    parse_segment(from, layout, place, parsed);
    return parsed;
  }
};

TEST(LevelTable, SaysWhatOfEachChunkALevelNeeds) {
  const LevelsExample e;
  EXPECT_EQ(e.table.size(), 1u + 2 + 8 + 5 + 5);
  EXPECT_EQ(e.bytes.size(), segment_bytes(e.layout, 4, 3, 100, e.table.size()));
  const ParsedSegment parsed = e.parse(e.bytes);
  ASSERT_TRUE(parsed.status.ok()) << parsed.status.text();
  EXPECT_TRUE(std::equal(parsed.mask.begin(), parsed.mask.end(), e.mask.begin(), e.mask.end()));
  EXPECT_EQ(parsed.sizes[3], 30u);
  std::array<ChunkBeginning, kMaxSegmentChunks> out;
  const std::uint64_t wanted[] = {12, 5, 5};
  for (const unsigned level : {1u, 2u, 30u}) {
    ASSERT_TRUE(read_level_table(parsed, 0, level, out).ok());
    EXPECT_EQ(out[0].bytes, wanted[std::min(level, 3u) - 1]);
    EXPECT_EQ(out[0].check, level_check(std::span(e.coded).first(static_cast<std::size_t>(out[0].bytes))));
    EXPECT_EQ(out[1].bytes, 0u);
    EXPECT_EQ(out[2].bytes, 40u);
    EXPECT_EQ(out[2].check, level_check(e.raw));
    EXPECT_EQ(out[3].bytes, 30u);
  }
  // The head alone is enough for it.
  const auto head = *segment_head_bytes(std::span(e.bytes).first(kSegmentPrefixBytes), e.layout, 0);
  const ParsedSegment alone = e.parse(std::span(e.bytes).first(static_cast<std::size_t>(head)));
  EXPECT_TRUE(alone.head_intact);
  EXPECT_TRUE(read_level_table(alone, 0, 1, out).ok());
  EXPECT_EQ(out[3].bytes, 30u);
}

TEST(LevelTable, EveryBitFlip_IsSeen) {
  const LevelsExample e;
  const auto head = static_cast<std::size_t>(*segment_head_bytes(e.bytes, e.layout, 0));
  for (std::size_t bit = 0; bit < e.bytes.size() * 8; ++bit) {
    Bytes damaged = e.bytes;
    damaged[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    EXPECT_FALSE(e.parse(damaged).status.ok()) << "bit " << bit;
    if (bit / 8 < head && bit / 8 >= segment_size_width(e.layout)) {
      EXPECT_FALSE(e.parse(damaged).head_intact);
    }
  }
}

TEST(LevelTable, ThatBreaksARule_IsRefused) {
  LevelsExample e;
  std::array<ChunkBeginning, kMaxSegmentChunks> out;
  const auto status = [&](Bytes table) {
    e.assemble(table);
    const ParsedSegment parsed = e.parse(e.bytes);
    EXPECT_TRUE(parsed.status.ok());
    return read_level_table(parsed, 0, 1, out).code();
  };
  EXPECT_EQ(status(e.table), StatusCode::ok);
  const auto changed = [&](std::size_t at, std::uint8_t to) {
    Bytes table = e.table;
    table[at] = to;
    return table;
  };
  EXPECT_EQ(status(changed(0, 17)), StatusCode::corrupt);  // too many
  EXPECT_EQ(status(changed(1, 0)), StatusCode::corrupt);   // none longer
  EXPECT_EQ(status(changed(2, 0)), StatusCode::corrupt);
  EXPECT_EQ(status(changed(2, 24)), StatusCode::ok);       // 29 of 30
  EXPECT_EQ(status(changed(2, 25)), StatusCode::corrupt);  // the whole chunk
  for (std::size_t n = 1; n < e.table.size(); ++n)
    EXPECT_EQ(status(Bytes(e.table.begin(), e.table.begin() + static_cast<std::ptrdiff_t>(n))), StatusCode::corrupt);
  Bytes longer = e.table;
  longer.push_back(0);
  EXPECT_EQ(status(longer), StatusCode::corrupt);
}

TEST(LevelTable, Limit_HoldsForTheLargest) {
  const SegmentLayout layout({{1, 64, 1 << 26}, {1, 1, 1 << 26}}, DType::f64, true);
  EXPECT_EQ(layout.segment_chunks(0), kMaxSegmentChunks);
  // Sizes of five bytes each, with their checks.
  EXPECT_LT(layout.full_chunk_bytes(), UINT64_C(1) << 35);
  EXPECT_EQ(kMaxLevelTableBytes, 64u * (1 + 16 * 9));
  EXPECT_EQ(level_size_room(layout), 1u);
  EXPECT_EQ(level_size_room(SegmentLayout({{1, 64, 1 << 26}, {1, 1, 1 << 26}}, DType::f64)), 0u);
}

}  // namespace
}  // namespace quern
