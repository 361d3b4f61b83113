// Files of other programs: each writer's bytes are read to the same cloud, forms that only others write are read.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>

#include "lidar/cloud/little_endian.h"
#include "lidar/files/cloud_files.h"
#include "lidar/files/formats.h"
#include "tests/unit_lidar_drive/made_clouds.h"

namespace quern::lidar {
namespace {

using namespace quern::lidar_test;

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

Result<PointCloud> read(const char* name, const std::string& text) { return read_cloud(name, bytes_of(text), {}); }

/// Writes and reads; the name has the format's ending.
PointCloud through(const PointCloud& cloud, FileFormat format, const char* name, unsigned columns = 0) {
  const auto file = write_cloud(cloud, format);
  EXPECT_TRUE(file.ok()) << file.status().text();
  EXPECT_TRUE(file->left_out.empty());
  auto back = read_cloud(name, file->bytes, {columns});
  EXPECT_TRUE(back.ok()) << back.status().text();
  return std::move(back).value();
}

TEST(CloudFiles_AllAttributes_SurvivePcd, EachKind) {
  const PointCloud scan = with_columns(small_scan(300, 1));
  EXPECT_TRUE(same_cloud(through(scan, FileFormat::pcd, "a.pcd"), scan));
  const PointCloud wide = as_f64(scan);
  EXPECT_TRUE(same_cloud(through(wide, FileFormat::pcd, "a.pcd"), wide));
  const PointCloud scaled = as_scaled(scan, 0.01);
  const PointCloud back = through(scaled, FileFormat::pcd, "a.pcd");
  for (std::uint64_t i = 0; i < scan.points(); ++i) EXPECT_EQ(back.position(i), scaled.position(i));
}

TEST(CloudFiles_Attributes_SurvivePly, WithoutLongIntegers) {
  PointCloud scan = with_columns(small_scan(300, 2));
  const auto file = write_cloud(scan, FileFormat::ply);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->left_out, (Vector<String>{"c_i64", "c_u64"}));
  std::erase_if(scan.columns, [](const CloudColumn& c) { return c.type == DType::i64 || c.type == DType::u64; });
  EXPECT_TRUE(same_cloud(through(scan, FileFormat::ply, "a.ply"), scan));
  EXPECT_TRUE(same_cloud(through(as_f64(scan), FileFormat::ply, "a.ply"), as_f64(scan)));
}

TEST(CloudFiles_BinOfFourAndFive_ComeBack, AskedAndTold) {
  PointCloud scan = small_scan(300, 3);
  EXPECT_TRUE(same_cloud(through(scan, FileFormat::bin, "a.bin"), scan));
  EXPECT_TRUE(same_cloud(through(scan, FileFormat::bin, "a.bin", 5), scan));
  EXPECT_TRUE(same_cloud(through(scan, FileFormat::bin, "a.pcd.bin"), scan));
  scan.columns.pop_back();
  EXPECT_TRUE(same_cloud(through(scan, FileFormat::bin, "a.bin"), scan));
  EXPECT_TRUE(same_cloud(through(scan, FileFormat::bin, "a.bin", 4), scan));
}

TEST(CloudFiles_BinWhoseColumnsCannotBeTold_AsksForThem, AmbiguousAndOther) {
  const std::string zeros(80, '\0');
  EXPECT_EQ(read("a.bin", zeros).status().code(), StatusCode::invalid_argument);
  std::string noise(160, '\0');
  for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(i * 89 + 11);
  EXPECT_EQ(read("a.bin", noise).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(read_cloud("a.bin", bytes_of(noise), {4})->points(), 10U);
  EXPECT_EQ(read_cloud("a.bin", bytes_of(noise), {5})->points(), 8U);
  EXPECT_EQ(read_cloud("a.bin", bytes_of(noise).first(100), {4}).status().code(), StatusCode::truncated);
  EXPECT_EQ(read("a.bin", std::string(17, 'x')).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(read("a.bin", "")->points(), 0U);
}

TEST(CloudFiles_Npy_ComeBack, TypesAndOrders) {
  PointCloud scan = small_scan(100, 4);
  scan.columns[1].name = "column_4";
  EXPECT_TRUE(same_cloud(through(scan, FileFormat::npy, "a.npy"), scan));
  PointCloud wide = as_f64(scan);
  wide.columns.clear();
  EXPECT_TRUE(same_cloud(through(wide, FileFormat::npy, "a.npy"), wide));
  std::string text("\x93NUMPY\x01\x00", 8);
  std::string header = "{'descr': '>f4', 'fortran_order': True, 'shape': (2, 4), }";
  header += std::string(64 - (10 + header.size() + 1) % 64, ' ') + "\n";
  text += static_cast<char>(header.size());
  text += '\0';
  text += header;
  for (const float x : {1.0F, 5.0F, 2.0F, 6.0F, 3.0F, 7.0F, 4.0F, 8.0F}) {
    std::uint8_t room[4];
    store_le(x, room);
    for (int i = 3; i >= 0; --i) text += static_cast<char>(room[i]);
  }
  const auto turned = read("a.npy", text);
  ASSERT_TRUE(turned.ok()) << turned.status().text();
  EXPECT_EQ(turned->position(0), (std::array<double, 3>{1, 2, 3}));
  EXPECT_EQ(turned->position(1), (std::array<double, 3>{5, 6, 7}));
  EXPECT_EQ(element_as_double(turned->columns[0], 1), 8);
}

TEST(CloudFiles_AsciiPcd_IsRead, CommentsPaddingArraysNan) {
  const auto cloud =
      read("a.pcd",
           "# .PCD v.7\nVERSION .7\nFIELDS x y _ z intensity normal\nSIZE 4 4 1 4 1 4\nTYPE F F U F U F\n"
           "COUNT 1 1 2 1 1 2\nWIDTH 2\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 2\nDATA ascii\n"
           "1.5 -2 0 0 nan 255 0.5 1e-3\r\n3 4 9 9 5 0 -0 2\n");
  ASSERT_TRUE(cloud.ok()) << cloud.status().text();
  EXPECT_EQ(cloud->points(), 2U);
  EXPECT_EQ(cloud->position(1), (std::array<double, 3>{3, 4, 5}));
  EXPECT_FALSE(cloud->is_finite(0));
  ASSERT_EQ(cloud->columns.size(), 3U);
  EXPECT_EQ(cloud->columns[0].type, DType::u8);
  EXPECT_EQ(cloud->columns[0].values, (Vector<std::uint8_t>{255, 0}));
  EXPECT_EQ(cloud->columns[1].name, "normal_0");
  EXPECT_TRUE(std::signbit(element_as_double(cloud->columns[1], 1)));
}

TEST(CloudFiles_PackedPcd_IsRead, LiteralsAndCopies) {
  // Two points: x = 1, 1; y = 0, 0; z = 2, 2: 24 bytes by columns. A literal, then copies of 4 bytes back, of 1 back.
  std::string packed;
  const auto literal = [&](const std::string& bytes) {
    packed += static_cast<char>(bytes.size() - 1);
    packed += bytes;
  };
  const auto copy = [&](unsigned length, unsigned back) {
    packed += static_cast<char>((length - 2) << 5 | (back - 1) >> 8);
    packed += static_cast<char>((back - 1) & 255);
  };
  literal(std::string("\x00\x00\x80\x3f", 4));
  copy(4, 4);
  literal(std::string(1, '\0'));
  copy(7, 1);
  literal(std::string("\x00\x00\x00\x40", 4));
  copy(4, 4);
  std::string text =
      "VERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 1\nHEIGHT 2\nPOINTS 2\n"
      "DATA binary_compressed\n";
  const std::uint32_t sizes[] = {static_cast<std::uint32_t>(packed.size()), 24};
  for (const std::uint32_t size : sizes)
    for (int i = 0; i < 4; ++i) text += static_cast<char>(size >> (8 * i));
  const auto cloud = read("a.pcd", text + packed);
  ASSERT_TRUE(cloud.ok()) << cloud.status().text();
  EXPECT_EQ(cloud->position(0), (std::array<double, 3>{1, 0, 2}));
  EXPECT_EQ(cloud->position(1), (std::array<double, 3>{1, 0, 2}));
  EXPECT_EQ(cloud->rows, 2U);
  // A copy from before the beginning.
  Vector<std::uint8_t> out(4);
  const std::uint8_t bad[] = {0x40, 0x00};
  EXPECT_EQ(expand_lzf(bad, out).code(), StatusCode::corrupt);
}

TEST(CloudFiles_PlyOfOthers_IsRead, AsciiBigEndianFacesBefore) {
  const auto ascii =
      read("a.ply",
           "ply\nformat ascii 1.0\ncomment by hand\nelement face 1\nproperty list uchar int vertex_index\n"
           "element vertex 2\nproperty float z\nproperty float y\nproperty float x\nproperty uchar red\n"
           "end_header\n3 0 1 0\n1 2 3 255\n-4 5 6 0\n");
  ASSERT_TRUE(ascii.ok()) << ascii.status().text();
  EXPECT_EQ(ascii->position(0), (std::array<double, 3>{3, 2, 1}));
  EXPECT_EQ(ascii->columns[0].values, (Vector<std::uint8_t>{255, 0}));
  std::string big =
      "ply\r\nformat binary_big_endian 1.0\r\nelement other 1\nproperty list ushort short l\nelement vertex 1\n"
      "property double x\nproperty double y\nproperty double z\nproperty short t\nend_header\n";
  big += std::string("\x00\x02\x01\x01\x02\x02", 6);
  for (const double x : {1.25, -2.5, 1e6}) {
    std::uint8_t room[8];
    store_le(x, room);
    for (int i = 7; i >= 0; --i) big += static_cast<char>(room[i]);
  }
  big += std::string("\x01\x02", 2);
  const auto turned = read("a.ply", big);
  ASSERT_TRUE(turned.ok()) << turned.status().text();
  EXPECT_EQ(turned->position(0), (std::array<double, 3>{1.25, -2.5, 1e6}));
  EXPECT_EQ(element_as_double(turned->columns[0], 0), 258);
}

TEST(CloudFiles_Formats_AreTold, NamesAndBytes) {
  EXPECT_EQ(format_of_name("dir.las/a.PCD"), FileFormat::pcd);
  EXPECT_EQ(format_of_name("dir.las/a"), FileFormat::unknown);
  EXPECT_EQ(*recognize("a.dat", bytes_of("ply\nformat")), FileFormat::ply);
  EXPECT_EQ(*recognize("a.bin", bytes_of("LASF")), FileFormat::bin);
  const auto laz = recognize("a.laz", bytes_of("x"));
  EXPECT_EQ(laz.status().code(), StatusCode::unsupported);
  EXPECT_NE(laz.status().text().find("laszip"), std::string::npos);
  EXPECT_EQ(recognize("a.txt", bytes_of("1 2 3")).status().code(), StatusCode::unsupported);
}

TEST(CloudFiles_CoordinatesAFormatCannotHold_AreNotMoved, BinAndLas) {
  EXPECT_EQ(write_cloud(as_f64(small_scan(10, 5)), FileFormat::bin).status().code(), StatusCode::unsupported);
  PointCloud odd;
  for (const float x : {1.00001F, 2.0F, 3.0F}) odd.words.push_back(std::bit_cast<std::uint32_t>(x));
  EXPECT_EQ(write_cloud(odd, FileFormat::las).status().code(), StatusCode::unsupported);
  odd.words[0] = 0x7FC00000;
  EXPECT_EQ(write_cloud(odd, FileFormat::las).status().code(), StatusCode::unsupported);
  const PointCloud millimetres = small_scan(100, 6);
  const auto file = write_cloud(millimetres, FileFormat::las);
  ASSERT_TRUE(file.ok()) << file.status().text();
  const auto back = read_cloud("a.las", file->bytes, {});
  ASSERT_TRUE(back.ok());
  for (std::uint64_t i = 0; i < millimetres.points(); ++i)
    for (std::size_t axis = 0; axis < 3; ++axis)
      EXPECT_EQ(static_cast<float>(back->position(i)[axis]), static_cast<float>(millimetres.position(i)[axis]));
}

}  // namespace
}  // namespace quern::lidar
