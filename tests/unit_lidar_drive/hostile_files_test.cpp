// Hostile files: headers that promise too much, files cut anywhere, bytes changed anywhere. Each is a status or a cloud
// no larger than the file allows.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lidar/files/cloud_files.h"
#include "tests/unit_lidar/clouds.h"
#include "tests/unit_lidar_drive/made_clouds.h"

namespace quern::lidar {
namespace {

using namespace quern::lidar_test;

struct HostileFile {
  const char* name;
  std::string text;
};

std::string pcd(const std::string& fields, const std::string& sizes, const std::string& types,
                const std::string& points, const std::string& rest) {
  return "VERSION 0.7\nFIELDS " + fields + "\nSIZE " + sizes + "\nTYPE " + types + "\nWIDTH " + points +
         "\nHEIGHT 1\nPOINTS " + points + "\nDATA " + rest;
}

std::vector<HostileFile> hostile_files() {
  const std::string xyz = "FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\n";
  return {
      {"a.pcd", ""},
      {"a.pcd", "VERSION 0.7\n"},
      {"a.pcd", pcd("x y z", "4 4 4", "F F F", "1099511627775", "binary\n")},
      {"a.pcd", pcd("x y z", "4 4 4", "F F F", "99999999999999999999", "binary\n")},
      {"a.pcd", pcd("x y z", "4 4 4", "F F F", "-1", "binary\n")},
      {"a.pcd", pcd("x y z", "4 4", "F F F", "1", "ascii\n1 2 3\n")},
      {"a.pcd", pcd("x y z", "4 4 3", "F F F", "1", "ascii\n1 2 3\n")},
      {"a.pcd", pcd("x y z", "0 0 0", "F F F", "1", "ascii\n1 2 3\n")},
      {"a.pcd", pcd("x y", "4 4", "F F", "1", "ascii\n1 2\n")},
      {"a.pcd", pcd("x y z", "4 4 4", "I I I", "1", "ascii\n1 2 3\n")},
      {"a.pcd", pcd("x y z", "4 4 4", "F F F", "2", "ascii\n1 2 3\n4 5\n")},
      {"a.pcd", pcd("x y z", "4 4 4", "F F F", "1", "ascii\n1 2 three\n")},
      {"a.pcd", pcd("x y z", "4 4 4", "F F F", "1", "zipped\n1 2 3\n")},
      {"a.pcd", pcd("x y z", "4 4 4", "F F F", "2", "binary\n12345678901234567890123")},
      {"a.pcd", pcd("x y z", "4 4 4", "F F F", "1000000",
                    std::string("binary_compressed\n\xff\xff\xff\x7f\x00\x1b\xb7\x00xx", 28))},
      {"a.pcd", "VERSION 0.7\n" + xyz + "COUNT 1023 1023 1023\nPOINTS 1\nDATA binary\n"},
      {"a.pcd", "VERSION 0.7\n" + xyz + "WIDTH 1099511627775\nHEIGHT 1099511627775\nDATA binary\n"},
      {"a.ply", "ply\n"},
      {"a.ply",
       "ply\nformat ascii 1.0\nelement vertex 9999999999\nproperty float x\nproperty float y\nproperty float "
       "z\nend_header\n1 2 3\n"},
      {"a.ply",
       "ply\nformat binary_little_endian 1.0\nelement vertex 1099511627775\nproperty float x\nproperty float "
       "y\nproperty float z\nend_header\n"},
      {"a.ply", "ply\nformat binary_little_endian 1.0\nelement vertex 1000000000\nend_header\n"},
      {"a.ply",
       "ply\nformat binary_little_endian 1.0\nelement face 1099511627775\nproperty list int int v\nelement vertex "
       "1\nproperty float x\nproperty float y\nproperty float z\nend_header\n\xff\xff\xff\xff"},
      {"a.ply",
       "ply\nformat binary_little_endian 1.0\nelement empty 1099511627775\nelement vertex 1\nproperty float "
       "x\nend_header\n"},
      {"a.ply", "ply\nformat ascii 1.0\nproperty float x\nend_header\n"},
      {"a.ply", "ply\nformat ascii 1.0\nelement vertex 1\nproperty list uchar float x\nend_header\n1 1\n"},
      {"a.ply", "ply\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n1 2 3\n"},
      {"a.ply", "ply\nformat middle_endian 1.0\nend_header\n"},
      {"a.npy", std::string("\x93NUMPY\x01\x00\xff\xff{'descr'", 18)},
      {"a.npy", std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'", 20)},
      {"a.npy",
       std::string("\x93NUMPY\x01\x00\x41\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999, 4)}", 75)},
      {"a.npy",
       std::string(
           "\x93NUMPY\x01\x00\x47\x00{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551615, 4)}",
           81)},
      {"a.npy", std::string("\x93NUMPY\x01\x00\x36\x00{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", 64)},
      {"a.npy", std::string("\x93NUMPY\x01\x00\x38\x00{'descr': '|O', 'fortran_order': False, 'shape': (3, 4)} ", 66)},
      {"a.las", "LASF"},
      {"a.las", "LASF" + std::string(300, '\0')},
      {"a.las", "LASF" + std::string(400, '\xff')},
      {"a.laz", "LASF" + std::string(400, '\1')},
      {"a.bin", std::string(15, 'x')},
      {"a", "nothing"},
  };
}

TEST(HostileFiles_EveryOne_IsRefused, ListOfHeaders) {
  std::size_t number = 0;
  for (const HostileFile& file : hostile_files()) {
    SCOPED_TRACE(testing::Message() << number++ << " " << file.name);
    const auto cloud =
        read_cloud(file.name, {reinterpret_cast<const std::uint8_t*>(file.text.data()), file.text.size()}, {});
    EXPECT_FALSE(cloud.ok());
    EXPECT_FALSE(cloud.status().text().empty());
  }
}

TEST(HostileFiles_FewBytesForManyColumns, AreTooShort) {
  // 1 MB of text that would be 500000 rows of 4 KB.
  const std::string text =
      "VERSION 0.7\nFIELDS x y z a\nSIZE 4 4 4 4\nTYPE F F F F\nCOUNT 1 1 1 1021\nPOINTS 500000\n"
      "DATA ascii\n" +
      std::string(1000000, ' ');
  const auto cloud = read_cloud("a.pcd", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, {});
  EXPECT_EQ(cloud.status().code(), StatusCode::truncated);
}

TEST(HostileFiles_MoreThanMemoryAllows_AreRefused, EveryFormat) {
  const PointCloud scan = small_scan(640, 1);
  for (const auto& [format, name, copies] :
       {std::tuple(FileFormat::bin, "a.bin", 1U), std::tuple(FileFormat::pcd, "a.pcd", 1U),
        std::tuple(FileFormat::ply, "a.ply", 1U), std::tuple(FileFormat::npy, "a.npy", 2U)}) {
    SCOPED_TRACE(name);
    const auto file = write_cloud(scan, format);
    ASSERT_TRUE(file.ok());
    const std::uint64_t most = copies * scan.points() * 20;
    EXPECT_TRUE(read_cloud(name, file->bytes, {5, most}).ok());
    EXPECT_EQ(read_cloud(name, file->bytes, {5, most - 1}).status().code(), StatusCode::memory_limit);
  }
}

TEST(HostileFiles_CutAndChanged_AreCloudsOrStatus, EveryFormat) {
  const PointCloud scan = small_scan(64, 1);
  Random random(3);
  for (const auto& [format, name] :
       {std::pair(FileFormat::bin, "a.bin"), std::pair(FileFormat::pcd, "a.pcd"), std::pair(FileFormat::ply, "a.ply"),
        std::pair(FileFormat::npy, "a.npy"), std::pair(FileFormat::las, "a.las")}) {
    SCOPED_TRACE(name);
    const auto file = write_cloud(scan, format);
    ASSERT_TRUE(file.ok());
    for (std::size_t n = 0; n < file->bytes.size(); ++n) {
      const auto cut = read_cloud(name, std::span(file->bytes).first(n), {5});
      if (cut.ok()) {
        EXPECT_LT(cut->points(), scan.points()) << n;
      }
      if (cut.ok()) {
        EXPECT_EQ(format, FileFormat::bin) << n;
      }
    }
    for (int i = 0; i < 4000; ++i) {
      auto changed = file->bytes;
      for (int k = 0; k <= i % 3; ++k)
        changed[static_cast<std::size_t>(random.below(std::min<std::uint64_t>(changed.size(), 400)))] =
            static_cast<std::uint8_t>(random.next());
      const auto cloud = read_cloud(name, changed, {5});
      if (cloud.ok()) {
        EXPECT_LE(cloud->points(), changed.size());
      }
    }
  }
}

}  // namespace
}  // namespace quern::lidar
