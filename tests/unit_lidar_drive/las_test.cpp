// LAS files of every point format and version: all fields come back, an exact drive gives the same file.
#include <gtest/gtest.h>

#include <cstring>

#include "lidar/cloud/little_endian.h"
#include "lidar/drive/frame_coding.h"
#include "lidar/files/cloud_files.h"
#include "lidar/files/las_layout.h"
#include "tests/unit_lidar/clouds.h"

namespace quern::lidar {
namespace {

using lidar_test::Random;

/// A file of `points` points of a format, with `extra` bytes each and a variable record in its header.
Vector<std::uint8_t> make_las(unsigned format, unsigned minor, std::uint64_t extra, std::uint32_t points) {
  const std::uint64_t header = minor >= 4 ? kLasHeaderBytes14 : minor == 3 ? 235 : kLasHeaderBytes;
  const std::uint64_t points_at = header + 60;
  const std::uint64_t record = las_record_bytes(format) + extra;
  Vector<std::uint8_t> out(static_cast<std::size_t>(points_at + record * points));
  Random random(format + 16 * minor);
  for (std::size_t i = header; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(random.next());
  std::uint8_t* const at = out.data();
  std::memcpy(at, "LASF", 4);
  at[24] = 1;
  at[25] = static_cast<std::uint8_t>(minor);
  store_le(static_cast<std::uint16_t>(header), at + kLasHeaderSizeAt);
  store_le(static_cast<std::uint32_t>(points_at), at + kLasPointsAt);
  at[kLasFormatAt] = static_cast<std::uint8_t>(format);
  store_le(static_cast<std::uint16_t>(record), at + kLasRecordBytesAt);
  if (format < 6 || minor < 4) store_le(points, at + kLasCountAt);
  if (minor >= 4) store_le(std::uint64_t{points}, at + kLasCount64At);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    store_le(0.01, at + kLasScaleAt + 8 * axis);
    store_le(1e9, at + kLasBoxAt + 16 * axis);
    store_le(-1e9, at + kLasBoxAt + 16 * axis + 8);
    for (std::uint32_t i = 0; i < points; ++i)
      store_le(static_cast<std::int32_t>(random.below(20000)) - 10000, at + points_at + i * record + 4 * axis);
  }
  return out;
}

TEST(Las_EveryFormat_ComesBackByteForByte, ReadAndWritten) {
  for (unsigned format = 0; format <= kMostLasFormat; ++format)
    for (const unsigned minor : format >= 6 ? std::vector<unsigned>{4} : std::vector<unsigned>{0, 1, 2, 3, 4}) {
      SCOPED_TRACE(testing::Message() << "format " << format << " version 1." << minor);
      const auto file = make_las(format, minor, format % 3 * 5, 40);
      const auto cloud = read_cloud("a.las", file, {});
      ASSERT_TRUE(cloud.ok()) << cloud.status().text();
      EXPECT_EQ(cloud->points(), 40U);
      const auto again = write_cloud(*cloud, FileFormat::las);
      ASSERT_TRUE(again.ok()) << again.status().text();
      EXPECT_EQ(again->bytes, file);
      EXPECT_TRUE(again->left_out.empty());
    }
}

TEST(Las_RecordSizes_AreThoseOfTheSpecification, AllFormats) {
  const std::uint64_t sizes[] = {20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67};
  for (unsigned format = 0; format <= kMostLasFormat; ++format) EXPECT_EQ(las_record_bytes(format), sizes[format]);
  EXPECT_EQ(las_record_bytes(11), 0U);
}

TEST(Las_ExactDrive_GivesTheSameFile, FormatSixWithExtraBytes) {
  const auto file = make_las(6, 4, 7, 300);
  SerialRunner runner;
  const auto cloud = read_cloud("a.las", file, {});
  ASSERT_TRUE(cloud.ok());
  const auto frame = encode_frame(*cloud, {Mode::exact, 0}, runner);
  ASSERT_TRUE(frame.ok());
  const auto back = decode_frame(frame->description, frame->scan, 1 << 20, runner);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(write_cloud(*back, FileFormat::las)->bytes, file);
}

TEST(Las_SetDrive_HasTrueCounts, FewerPoints) {
  // Format 6 is one of version 1.4, and there are files that have it in an older one.
  for (const auto& [format, minor] : {std::pair(3U, 2U), std::pair(6U, 4U), std::pair(6U, 2U)}) {
    SCOPED_TRACE(testing::Message() << "format " << format << " version 1." << minor);
    const auto file = make_las(format, minor, 0, 500);
    SerialRunner runner;
    const auto cloud = read_cloud("a.las", file, {});
    ASSERT_TRUE(cloud.ok());
    const auto frame = encode_frame(*cloud, {Mode::set, 15'000'000'000}, runner);
    ASSERT_TRUE(frame.ok()) << frame.status().text();
    const auto back = decode_frame(frame->description, frame->scan, 1 << 20, runner);
    ASSERT_TRUE(back.ok());
    EXPECT_LT(back->points(), 500U);
    const auto written = write_cloud(*back, FileFormat::las);
    ASSERT_TRUE(written.ok());
    const auto again = read_cloud("a.las", written->bytes, {});
    ASSERT_TRUE(again.ok()) << again.status().text();
    EXPECT_EQ(again->points(), back->points());
    EXPECT_EQ(again->words, back->words);
  }
}

TEST(Las_Compressed_SaysWhatToDo, FormatBits) {
  auto file = make_las(1, 2, 0, 3);
  file[kLasFormatAt] |= 0x80;
  const auto cloud = read_cloud("a.las", file, {});
  EXPECT_EQ(cloud.status().code(), StatusCode::unsupported);
  EXPECT_NE(cloud.status().text().find("pdal"), std::string::npos);
}

}  // namespace
}  // namespace quern::lidar
