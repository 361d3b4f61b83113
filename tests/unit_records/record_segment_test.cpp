// Segments of records: where parts lie, and damage to heads and parts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "libcompress/format/records/limits.h"
#include "libcompress/format/records/record_segment.h"

namespace quern {
namespace {

constexpr RecordPlace kPlace{0x1234, 1};

/// Ten items in segments of four: the first section has all of them, the second three, the third strings.
RecordLayout example() {
  RecordLayout layout;
  layout.items = 10;
  layout.segment_items = 4;
  RecordSection all;
  all.name = "all";
  all.dtype = DType::u16;
  all.items = 10;
  RecordSection few;
  few.name = "few";
  few.items = 3;
  few.item_elems = 2;
  RecordSection strings;
  strings.name = "strings";
  strings.form = SectionForm::bytes;
  layout.sections = {all, few, strings};
  return layout;
}

struct Segment {
  Vector<std::uint8_t> coded{1, 2, 3};
  Vector<std::uint8_t> text{'a', 'b'};
  Vector<std::uint8_t> bytes;

  explicit Segment(const RecordLayout& layout) {
    const PartPiece pieces[] = {{false, coded, 8}, {true, text, 2}};
    assemble_record_segment(layout, kPlace, pieces, bytes);
  }
};

TEST(RecordLayout_PartItems, EndWithTheSection) {
  const RecordLayout layout = example();
  EXPECT_EQ(layout.segments(), 3u);
  EXPECT_EQ(layout.part_items(0, 0), 4u);
  EXPECT_EQ(layout.part_items(0, 2), 2u);
  EXPECT_EQ(layout.part_items(1, 0), 3u);
  EXPECT_EQ(layout.part_items(1, 1), 0u);
  EXPECT_FALSE(layout.has_part(1, 1));
  EXPECT_TRUE(layout.has_part(2, 1));
  EXPECT_EQ(layout.by_name("few"), &layout.sections[1]);
  EXPECT_EQ(layout.by_name("other"), nullptr);
}

TEST(RecordSegment_WhatIsWritten, ComesBack) {
  const RecordLayout layout = example();
  const Segment segment(layout);
  EXPECT_EQ(record_head_bytes(layout, 1), 8u + 8 + 12 + 4);
  EXPECT_EQ(segment.bytes.size(), record_head_bytes(layout, 1) + 3 + 2 + 8);
  const auto head = parse_record_head(segment.bytes, layout, kPlace);
  ASSERT_TRUE(head.ok()) << head.status().text();
  EXPECT_EQ(head->segment_bytes, segment.bytes.size());
  ASSERT_EQ(head->parts.size(), 2u);
  EXPECT_EQ(head->parts[0].section, 0u);
  EXPECT_FALSE(head->parts[0].is_raw);
  EXPECT_EQ(head->parts[0].part_bytes, 8u);
  EXPECT_EQ(head->parts[0].stored_bytes, 3u);
  EXPECT_EQ(head->parts[1].section, 2u);
  EXPECT_TRUE(head->parts[1].is_raw);
  EXPECT_EQ(head->parts[1].stored_bytes, 2u);
  const auto part = std::span(segment.bytes).subspan(static_cast<std::size_t>(head->parts[1].at), 2);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), segment.text.begin()));
  EXPECT_TRUE(check_part(head->parts[1], 1, part).ok());
  EXPECT_TRUE(check_record_segment(segment.bytes, kPlace).ok());
}

TEST(RecordSegment_OfAnotherPlace, IsRefused) {
  const RecordLayout layout = example();
  const Segment segment(layout);
  for (const RecordPlace place : {RecordPlace{0x1235, 1}, RecordPlace{0x1234, 2}}) {
    EXPECT_EQ(parse_record_head(segment.bytes, layout, place).status().code(), StatusCode::checksum_mismatch);
    EXPECT_EQ(check_record_segment(segment.bytes, place).code(), StatusCode::checksum_mismatch);
  }
}

TEST(RecordSegment_EveryFlippedBitOfTheHead, IsRefused) {
  const RecordLayout layout = example();
  Segment segment(layout);
  for (std::size_t bit = 0; bit < 8 * record_head_bytes(layout, 1); ++bit) {
    segment.bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    EXPECT_FALSE(parse_record_head(segment.bytes, layout, kPlace).ok()) << bit;
    segment.bytes[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
  }
}

TEST(RecordSegment_CutHead, IsTruncated) {
  const RecordLayout layout = example();
  const Segment segment(layout);
  for (std::size_t size = 0; size < record_head_bytes(layout, 1); ++size)
    EXPECT_EQ(parse_record_head(std::span(segment.bytes).first(size), layout, kPlace).status().code(),
              StatusCode::truncated);
}

/// What a writer must not write is refused though the checks hold.
TEST(RecordSegment_ImpossibleSizes, AreCorrupt) {
  const RecordLayout layout = example();
  const Vector<std::uint8_t> eight(8);
  const Vector<std::uint8_t> none;
  Vector<std::uint8_t> bytes;
  const auto code_of = [&](const PartPiece& first, const PartPiece& second) {
    assemble_record_segment(layout, kPlace, std::array{first, second}, bytes);
    return parse_record_head(bytes, layout, kPlace).status().code();
  };
  const PartPiece text{true, none, 0};
  EXPECT_EQ(code_of({true, eight, 8}, text), StatusCode::ok);
  EXPECT_EQ(code_of({false, eight, 8}, text), StatusCode::corrupt);  // coded, but not smaller
  EXPECT_EQ(code_of({false, none, 8}, text), StatusCode::corrupt);   // coded in nothing
  EXPECT_EQ(code_of({true, none, 8}, text), StatusCode::corrupt);    // raw, but cut: the sizes do not add up
  EXPECT_EQ(code_of({true, eight, 8}, {true, eight, kMaxStringBytes + 1}), StatusCode::corrupt);
  EXPECT_EQ(code_of({true, eight, 8}, {false, eight, 8}), StatusCode::corrupt);
  EXPECT_EQ(code_of({true, eight, 8}, {false, eight, 9}), StatusCode::ok);
}

}  // namespace
}  // namespace quern
