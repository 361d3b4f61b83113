// Headers of records: what is written comes back, and what breaks a rule is refused though its checksum holds.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "kernels/common/xxh3.h"
#include "libcompress/format/frame/header_bytes.h"
#include "libcompress/format/grid/header.h"
#include "libcompress/format/records/limits.h"
#include "libcompress/format/records/record_header.h"

namespace quern {
namespace {

RecordHeader example() {
  RecordHeader header;
  header.writer = this_writer();
  header.codec_id = 7;
  header.codec_version = 2;
  header.params = {1, 2, 3};
  header.metadata = {'{', '}'};
  header.layout.items = 1000;
  header.layout.segment_items = 64;
  header.layout.frames = {400, 0, 600};
  RecordSection values;
  values.name = "position";
  values.tag = 300;
  values.dtype = DType::f64;
  values.items = 900;
  values.item_elems = 3;
  values.requested = {BoundKind::rel, 0.5};
  values.enforced = {BoundKind::abs, 2.5};
  values.range = ValueRange{-1, 4};
  header.layout.sections.push_back(values);
  RecordSection strings;
  strings.name = "\xE6\x97\xA5\xF0\x9F\x98\x80";
  strings.form = SectionForm::bytes;
  header.layout.sections.push_back(strings);
  return header;
}

StatusCode code_after(const std::function<void(RecordHeader&)>& change) {
  RecordHeader header = example();
  change(header);
  const auto bytes = serialize_record_header(header);
  if (!bytes.ok()) return bytes.status().code();
  return parse_record_header(*bytes).status().code();
}

TEST(RecordHeader_WhatIsWritten, ComesBack) {
  RecordHeader header = example();
  const auto bytes = serialize_record_header(header);
  ASSERT_TRUE(bytes.ok()) << bytes.status().text();
  const auto back = parse_record_header(*bytes);
  ASSERT_TRUE(back.ok()) << back.status().text();
  EXPECT_EQ(back->must_understand, kRecords);
  EXPECT_EQ(back->codec_id, 7);
  EXPECT_EQ(back->codec_version, 2);
  EXPECT_EQ(back->params, header.params);
  EXPECT_EQ(back->metadata, header.metadata);
  EXPECT_EQ(back->checksum, header.checksum);
  EXPECT_EQ(back->layout.items, 1000u);
  EXPECT_EQ(back->layout.segment_items, 64u);
  EXPECT_EQ(back->layout.frames, header.layout.frames);
  ASSERT_EQ(back->layout.sections.size(), 2u);
  const RecordSection& values = back->layout.sections[0];
  EXPECT_EQ(values.name, "position");
  EXPECT_EQ(values.tag, 300);
  EXPECT_EQ(values.dtype, DType::f64);
  EXPECT_EQ(values.items, 900u);
  EXPECT_EQ(values.item_elems, 3u);
  EXPECT_EQ(values.requested.kind, BoundKind::rel);
  EXPECT_EQ(values.requested.value, 0.5);
  EXPECT_EQ(values.enforced, (EnforcedBound{BoundKind::abs, 2.5}));
  ASSERT_TRUE(values.range.has_value());
  EXPECT_EQ(values.range->max, 4);
  EXPECT_EQ(back->layout.sections[1].name, header.layout.sections[1].name);
  EXPECT_EQ(back->layout.sections[1].form, SectionForm::bytes);
}

TEST(RecordHeader_Bytes, AreThoseOfTheDocument) {
  RecordHeader header;
  header.writer = {1, 0, 1, 0};
  header.codec_version = 1;
  header.layout.items = 3;
  header.layout.segment_items = 2;
  RecordSection section;
  section.name = "a";
  section.dtype = DType::u8;
  section.items = 3;
  header.layout.sections.push_back(section);
  const auto bytes = serialize_record_header(header);
  ASSERT_TRUE(bytes.ok());
  const Vector<std::uint8_t> fields(bytes->begin() + 12, bytes->end() - 8);
  const Vector<std::uint8_t> expected{0, 1, 2, 0, 1, 0, 1, 0, 3, 2, 0, 0, 1, 1, 1, 1, 'a', 0, 16, 3, 1, 0, 0, 0};
  EXPECT_EQ(fields, expected);
}

TEST(RecordHeader_ReadersOfArrays, SayWhatTheStreamHolds) {
  RecordHeader header = example();
  const auto bytes = serialize_record_header(header);
  ASSERT_TRUE(bytes.ok());
  const auto as_array = parse_header(*bytes);
  EXPECT_EQ(as_array.status().code(), StatusCode::unsupported);
  EXPECT_NE(as_array.status().text().find("holds records"), std::string::npos) << as_array.status().text();

  Header array;
  const auto array_bytes = serialize_header(array);
  ASSERT_TRUE(array_bytes.ok());
  EXPECT_EQ(parse_record_header(*array_bytes).status().code(), StatusCode::unsupported);
}

/// A reader from before this kind knew feature bit 0 alone; what it says of an unknown one it says of this one.
TEST(RecordHeader_KindBit, IsOneThatMustBeUnderstood) {
  RecordHeader header = example();
  const auto bytes = serialize_record_header(header);
  ASSERT_TRUE(bytes.ok());
  ByteReader in(*bytes);
  in.skip(kHeaderPrefixBytes + 2);
  EXPECT_EQ(in.varint() & ~kLevelTables, kRecords);
}

TEST(RecordHeader_FeatureBits, OfArraysAreRefusedThoughTheChecksumHolds) {
  RecordHeader header = example();
  const auto written = serialize_record_header(header);
  ASSERT_TRUE(written.ok());
  const auto code_with = [&](std::uint64_t bits) {
    Vector<std::uint8_t> bytes = *written;
    bytes[kHeaderPrefixBytes + 2] = static_cast<std::uint8_t>(kRecords | bits);
    const std::size_t body = bytes.size() - kHeaderChecksumBytes;
    const std::uint64_t checksum = kernels::xxh3_64(bytes.data(), body);
    for (std::size_t i = 0; i < kHeaderChecksumBytes; ++i)
      bytes[body + i] = static_cast<std::uint8_t>(checksum >> (8 * i));
    return parse_record_header(bytes).status().code();
  };
  EXPECT_EQ(code_with(0), StatusCode::ok);
  for (const std::uint64_t bit : {kLevelTables, kMaskViews, kMaskLevels, kReferences, kParts})
    EXPECT_EQ(code_with(bit), code_with(4)) << bit;  // 4 is nobody's
  EXPECT_NE(code_with(4), StatusCode::ok);
}

TEST(RecordHeader_ImpossibleFields, AreCorruptThoughTheChecksumHolds) {
  const auto corrupt = StatusCode::corrupt;
  EXPECT_EQ(code_after([](RecordHeader&) {}), StatusCode::ok);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.items = kMaxElems + 1; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.items = 899; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.segment_items = 0; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.segment_items = kMaxSegmentItems + 1; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.frames = {1000, 1}; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.frames = {999}; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.frames.assign(kMaxFrames + 1, 0); }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.sections.clear(); }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.sections[0].form = static_cast<SectionForm>(3); }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.sections[0].dtype = static_cast<DType>(5); }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.sections[0].item_elems = 0; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.sections[0].item_elems = UINT64_C(1) << 23; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.sections[0].item_elems = kMaxElems; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.sections[0].requested = {BoundKind::psnr, 60}; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.sections[0].requested.value = -1; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.sections[0].enforced = {BoundKind::abs, -1}; }), corrupt);
  EXPECT_EQ(code_after([](RecordHeader& h) { h.layout.sections[0].range = ValueRange{2, 1}; }), corrupt);
}

TEST(RecordHeader_SectionNames, AreUtf8WithoutControlCharacters) {
  const auto corrupt = StatusCode::corrupt;
  const auto named = [](const char* name) {
    return code_after([name](RecordHeader& h) { h.layout.sections[1].name = name; });
  };
  EXPECT_EQ(named("weights.0/bias"), StatusCode::ok);
  EXPECT_EQ(named("\xC3\xA9"), StatusCode::ok);
  EXPECT_EQ(named("\xF4\x8F\xBF\xBF"), StatusCode::ok);
  for (const char* bad :
       {"", "a\n", "\x1B[31m", "\x7F", "\xC2\x85", "\xFF", "\xC0\xAF", "\xC3", "\xC3(", "\xE0\x80\xAF", "\xED\xA0\x80",
        "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "position"})
    EXPECT_EQ(named(bad), corrupt) << bad;
  const auto of_length = [](std::size_t bytes) {
    return code_after([bytes](RecordHeader& h) { h.layout.sections[1].name = String(bytes, 'n'); });
  };
  EXPECT_EQ(of_length(255), StatusCode::ok);
  EXPECT_EQ(of_length(256), corrupt);
}

TEST(RecordHeader_SectionsAtTheLimit, Fit) {
  RecordHeader header = example();
  header.layout.sections.clear();
  for (std::uint64_t i = 0; i < kMaxSections; ++i) {
    RecordSection section;
    section.name = String(250, 'n') + std::to_string(i).c_str();
    section.items = i % 1001;
    header.layout.sections.push_back(section);
  }
  const auto bytes = serialize_record_header(header);
  ASSERT_TRUE(bytes.ok()) << bytes.status().text();
  EXPECT_TRUE(parse_record_header(*bytes).ok());
  header.layout.sections.push_back(header.layout.sections.back());
  header.layout.sections.back().name = "one more";
  const auto more = serialize_record_header(header);
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(parse_record_header(*more).status().code(), StatusCode::corrupt);
}

TEST(RecordHeader_TooLong, IsNotWritten) {
  RecordHeader header = example();
  header.params.assign(kMaxParamsBytes, 7);
  header.metadata.assign(kMaxMetadataBytes, 0);
  std::mt19937 random(1);  // what it gives does not pack
  for (std::uint8_t& byte : header.metadata) byte = static_cast<std::uint8_t>(random());
  header.layout.frames.assign(1000, 1);
  const auto bytes = serialize_record_header(header);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().code(), StatusCode::invalid_argument);
}

}  // namespace
}  // namespace quern
