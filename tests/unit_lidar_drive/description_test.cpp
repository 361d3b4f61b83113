// Descriptions of frames: every field comes back, other bytes are refused, names are safe as files.
#include <gtest/gtest.h>

#include "lidar/drive/frame_description.h"

namespace quern::lidar {
namespace {

FrameDescription full() {
  FrameDescription out;
  out.name = "0000000012";
  out.time_stamp = -1'317'042'145'951'199'337;
  out.kind = CodedKind::scaled;
  out.grid.scale = {0.01, 0.02, 0.5};
  out.grid.offset = {-1, 2.5, 1e6};
  out.format = FileFormat::las;
  out.source_bytes = 3'740'000;
  out.rows = 64;
  out.columns = {{"intensity", DType::u16}, {"gps_time", DType::f64}, {"", DType::i8}};
  out.file_header = {1, 2, 3};
  return out;
}

TEST(FrameDescription_AllFields_ComeBack, WrittenAndRead) {
  const FrameDescription made = full();
  const auto read = read_description(write_description(made));
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->name, made.name);
  EXPECT_EQ(read->time_stamp, made.time_stamp);
  EXPECT_EQ(read->kind, made.kind);
  EXPECT_EQ(read->grid, made.grid);
  EXPECT_EQ(read->format, made.format);
  EXPECT_EQ(read->source_bytes, made.source_bytes);
  EXPECT_EQ(read->rows, made.rows);
  ASSERT_EQ(read->columns.size(), 3U);
  EXPECT_EQ(read->columns[1].name, "gps_time");
  EXPECT_EQ(read->columns[1].type, DType::f64);
  EXPECT_EQ(read->file_header, made.file_header);
}

TEST(FrameDescription_CutAnywhere_IsRefused, EveryLength) {
  const auto bytes = write_description(full());
  for (std::size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(read_description(std::span(bytes).first(n)).ok()) << n;
}

TEST(FrameDescription_ChangedBytes_NeverGiveAnUnsafeName, EveryByteAndValue) {
  const auto bytes = write_description(full());
  for (std::size_t at = 0; at < bytes.size(); ++at)
    for (unsigned value = 0; value < 256; ++value) {
      auto changed = bytes;
      changed[at] = static_cast<std::uint8_t>(value);
      const auto read = read_description(changed);
      if (read.ok()) {
        EXPECT_TRUE(is_frame_name(read->name)) << at << " " << value;
      }
    }
}

TEST(FrameNames_ThatEscapeAFolder_AreRefused, List) {
  for (const char* bad :
       {"", ".", "..", "../x", "a/b", "/etc/passwd", ".hidden", "a\\b", "a\nb", "\x01", "\xff", "\xc0\xaf"})
    EXPECT_FALSE(is_frame_name(bad)) << bad;
  EXPECT_FALSE(is_frame_name(std::string(201, 'a')));
  for (const char* good : {"000000", "a.pcd", "scan 1", "\xc3\xa9t\xc3\xa9", "a..b"})
    EXPECT_TRUE(is_frame_name(good)) << good;
}

TEST(FrameNames_MadeOfAnything_AreNames, List) {
  for (const char* text : {"", ".", "../../x", "a/b", "\xff\xfe", "ok", "a\tb"})
    EXPECT_TRUE(is_frame_name(frame_name_of(text))) << text;
  EXPECT_EQ(frame_name_of("000012"), "000012");
  EXPECT_TRUE(is_frame_name(frame_name_of(std::string(1000, 'z'))));
}

}  // namespace
}  // namespace quern::lidar
