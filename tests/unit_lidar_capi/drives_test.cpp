// The C interface: what is written comes back, refusals say why, failures leave nothing, memory comes from the caller.
#include <gtest/gtest.h>

#include <quern/lidar.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

class LidarCapi : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("quern-lidar-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directory(folder_);
    for (int i = 0; i < 300; ++i) {
      for (const double x : {0.1 * (i % 40), 0.3 * (i / 40), 0.05 * (i * 7 % 13)}) {
        wide_.push_back(500000 + x);
        xyz_.push_back(static_cast<float>(x));
      }
      ring_.push_back(static_cast<std::uint8_t>(i % 16));
    }
    column_.dtype = QUERN_U8;
    column_.name = "ring";
    column_.values = ring_.data();
    pointer_ = &column_;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  quern_lidar_cloud_desc scan() const {
    quern_lidar_cloud_desc out = QUERN_LIDAR_CLOUD_DESC_INIT;
    out.points = 300;
    out.xyz = xyz_.data();
    out.columns = &pointer_;
    out.column_count = 1;
    return out;
  }
  quern_lidar_cloud_desc wide() const {
    quern_lidar_cloud_desc out = scan();
    out.coordinates = QUERN_LIDAR_F64;
    out.xyz = wide_.data();
    return out;
  }
  /// One frame each.
  void write(const std::string& to, const std::vector<quern_lidar_cloud_desc>& scans, quern_lidar_mode mode,
             const quern_lidar_execution* execution = nullptr) {
    quern_lidar_writer_desc desc = QUERN_LIDAR_WRITER_DESC_INIT;
    desc.mode = mode;
    desc.max_error = 0.05;
    quern_lidar_writer* writer = nullptr;
    ASSERT_EQ(quern_lidar_writer_open(to.c_str(), &desc, execution, &writer), QUERN_OK) << quern_lidar_last_error();
    for (const auto& one : scans)
      ASSERT_EQ(quern_lidar_writer_add(writer, &one, nullptr), QUERN_OK) << quern_lidar_last_error();
    quern_lidar_result result = QUERN_LIDAR_RESULT_INIT;
    ASSERT_EQ(quern_lidar_writer_finish(writer, &result), QUERN_OK) << quern_lidar_last_error();
    EXPECT_EQ(result.frames, scans.size());
    EXPECT_EQ(result.file_bytes, fs::file_size(to));
    quern_lidar_writer_destroy(writer);
  }

  fs::path folder_;
  std::vector<float> xyz_;
  std::vector<double> wide_;
  std::vector<std::uint8_t> ring_;
  quern_lidar_column column_ = QUERN_LIDAR_COLUMN_INIT;
  const quern_lidar_column* pointer_ = nullptr;
};

TEST_F(LidarCapi, ExactDrive_ComesBackBitForBit) {
  write(path("a.qnl"), {scan(), wide()}, QUERN_LIDAR_EXACT);
  quern_lidar_drive* drive = nullptr;
  ASSERT_EQ(quern_lidar_drive_open(path("a.qnl").c_str(), nullptr, &drive), QUERN_OK) << quern_lidar_last_error();
  EXPECT_EQ(quern_lidar_drive_frames(drive), 2U);
  EXPECT_EQ(quern_lidar_drive_verify(drive), QUERN_OK);
  quern_lidar_cloud* clouds[2] = {};
  for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(quern_lidar_drive_read(drive, i, &clouds[i]), QUERN_OK);
  quern_lidar_frame_info info = QUERN_LIDAR_FRAME_INFO_INIT;
  ASSERT_EQ(quern_lidar_drive_inspect(drive, 1, &info), QUERN_OK);
  EXPECT_STREQ(info.name, "000001");
  EXPECT_EQ(info.mode, QUERN_LIDAR_EXACT);
  EXPECT_EQ(info.columns, 1U);
  quern_lidar_drive_destroy(drive);  // clouds outlive it
  quern_lidar_cloud_desc back = QUERN_LIDAR_CLOUD_DESC_INIT;
  ASSERT_EQ(quern_lidar_cloud_get(clouds[0], &back), QUERN_OK);
  EXPECT_EQ(std::memcmp(back.xyz, xyz_.data(), xyz_.size() * 4), 0);
  EXPECT_EQ(std::memcmp(back.columns[0]->values, ring_.data(), ring_.size()), 0);
  ASSERT_EQ(quern_lidar_cloud_get(clouds[1], &back), QUERN_OK);
  EXPECT_EQ(back.coordinates, QUERN_LIDAR_F64);
  EXPECT_EQ(std::memcmp(back.xyz, wide_.data(), wide_.size() * 8), 0);
  for (auto* cloud : clouds) quern_lidar_cloud_destroy(cloud);
}

TEST_F(LidarCapi, BoundedDrive_KeepsTheBoundBothWays) {
  for (const quern_lidar_mode mode : {QUERN_LIDAR_SET, QUERN_LIDAR_POINTS}) {
    const std::string file = path(mode == QUERN_LIDAR_SET ? "set.qnl" : "points.qnl");
    write(file, {scan(), wide()}, mode);
    quern_lidar_drive* drive = nullptr;
    ASSERT_EQ(quern_lidar_drive_open(file.c_str(), nullptr, &drive), QUERN_OK);
    for (std::uint64_t i = 0; i < 2; ++i) {
      quern_lidar_cloud* cloud = nullptr;
      ASSERT_EQ(quern_lidar_drive_read(drive, i, &cloud), QUERN_OK);
      quern_lidar_cloud_desc back = QUERN_LIDAR_CLOUD_DESC_INIT;
      ASSERT_EQ(quern_lidar_cloud_get(cloud, &back), QUERN_OK);
      const quern_lidar_cloud_desc original = i == 0 ? scan() : wide();
      quern_lidar_distances distances = QUERN_LIDAR_DISTANCES_INIT;
      ASSERT_EQ(quern_lidar_measure(&original, &back, nullptr, &distances), QUERN_OK) << quern_lidar_last_error();
      EXPECT_LE(distances.max_forward, 0.05);
      EXPECT_LE(distances.max_backward, 0.05);
      EXPECT_GT(distances.max_forward, 0);
      quern_lidar_cloud_destroy(cloud);
    }
    quern_lidar_drive_destroy(drive);
  }
}

TEST_F(LidarCapi, Files_AreReadAndWritten) {
  write(path("a.qnl"), {scan()}, QUERN_LIDAR_EXACT);
  quern_lidar_drive* drive = nullptr;
  quern_lidar_cloud* cloud = nullptr;
  ASSERT_EQ(quern_lidar_drive_open(path("a.qnl").c_str(), nullptr, &drive), QUERN_OK);
  ASSERT_EQ(quern_lidar_drive_read(drive, 0, &cloud), QUERN_OK);
  std::uint32_t left_out = 99;
  ASSERT_EQ(quern_lidar_cloud_write_file(cloud, path("a.pcd").c_str(), 0, &left_out), QUERN_OK)
      << quern_lidar_last_error();
  EXPECT_EQ(left_out, 0U);
  EXPECT_EQ(quern_lidar_cloud_write_file(cloud, path("a.pcd").c_str(), 0, nullptr), QUERN_ERROR_IO);
  EXPECT_EQ(quern_lidar_cloud_write_file(cloud, path("a.pcd").c_str(), 1, nullptr), QUERN_OK);
  ASSERT_EQ(quern_lidar_cloud_write_file(cloud, path("a.bin").c_str(), 0, &left_out), QUERN_OK);
  EXPECT_EQ(left_out, 1U);
  quern_lidar_cloud* again = nullptr;
  ASSERT_EQ(quern_lidar_cloud_read_file(path("a.pcd").c_str(), 0, nullptr, &again), QUERN_OK)
      << quern_lidar_last_error();
  quern_lidar_cloud_desc back = QUERN_LIDAR_CLOUD_DESC_INIT;
  ASSERT_EQ(quern_lidar_cloud_get(again, &back), QUERN_OK);
  EXPECT_EQ(std::memcmp(back.xyz, xyz_.data(), xyz_.size() * 4), 0);
  quern_lidar_cloud_destroy(again);
  quern_lidar_cloud_destroy(cloud);
  quern_lidar_drive_destroy(drive);
  EXPECT_EQ(quern_lidar_cloud_read_file(path("none.pcd").c_str(), 0, nullptr, &again), QUERN_ERROR_IO);
  EXPECT_NE(std::string(quern_lidar_last_error()).find("none.pcd"), std::string::npos);
}

TEST_F(LidarCapi, WrongUse_IsRefusedWithASentence) {
  quern_lidar_writer* writer = nullptr;
  quern_lidar_writer_desc desc = QUERN_LIDAR_WRITER_DESC_INIT;
  desc.mode = QUERN_LIDAR_SET;
  for (const double bad : {0.0, -1.0, 1000.0}) {
    desc.max_error = bad;
    EXPECT_EQ(quern_lidar_writer_open(path("x.qnl").c_str(), &desc, nullptr, &writer), QUERN_ERROR_INVALID_ARGUMENT);
    EXPECT_EQ(writer, nullptr);
  }
  desc.mode = 7;
  EXPECT_EQ(quern_lidar_writer_open(path("x.qnl").c_str(), &desc, nullptr, &writer), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_lidar_writer_open("", nullptr, nullptr, &writer), QUERN_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(quern_lidar_writer_open(path("x.qnl").c_str(), nullptr, nullptr, &writer), QUERN_OK);
  quern_lidar_cloud_desc bad = scan();
  bad.xyz = nullptr;
  EXPECT_EQ(quern_lidar_writer_add(writer, &bad, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  bad = scan();
  bad.points = UINT64_C(1) << 60;
  EXPECT_EQ(quern_lidar_writer_add(writer, &bad, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  quern_lidar_frame frame = QUERN_LIDAR_FRAME_INIT;
  frame.name = "../escape";
  const quern_lidar_cloud_desc good = scan();
  EXPECT_EQ(quern_lidar_writer_add(writer, &good, &frame), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_STRNE(quern_lidar_last_error(), "");
  EXPECT_EQ(quern_lidar_writer_finish(writer, nullptr), QUERN_ERROR_INVALID_ARGUMENT);  // no frame
  EXPECT_EQ(quern_lidar_writer_add(writer, &good, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  quern_lidar_writer_destroy(writer);
  EXPECT_TRUE(fs::is_empty(folder_)) << "something was left behind";
}

TEST_F(LidarCapi, DamagedDrive_IsAnErrorThatNamesIt) {
  write(path("a.qnl"), {scan()}, QUERN_LIDAR_EXACT);
  fs::resize_file(path("a.qnl"), fs::file_size(path("a.qnl")) - 5);
  quern_lidar_drive* drive = nullptr;
  EXPECT_NE(quern_lidar_drive_open(path("a.qnl").c_str(), nullptr, &drive), QUERN_OK);
  EXPECT_EQ(drive, nullptr);
  EXPECT_NE(std::string(quern_lidar_last_error()).find("a.qnl"), std::string::npos);
}

struct Counts {
  std::size_t held = 0;
  std::size_t calls = 0;
};

TEST_F(LidarCapi, CallersMemory_IsUsedAndGivenBack) {
  Counts counts;
  quern_lidar_execution execution = QUERN_LIDAR_EXECUTION_INIT;
  execution.allocator.user = &counts;
  execution.allocator.allocate = [](void* user, std::size_t bytes, std::size_t alignment) -> void* {
    auto* const c = static_cast<Counts*>(user);
    c->held += bytes;
    ++c->calls;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  };
  execution.allocator.release = [](void* user, void* memory, std::size_t bytes, std::size_t) {
    static_cast<Counts*>(user)->held -= bytes;
    std::free(memory);
  };
  write(path("a.qnl"), {scan()}, QUERN_LIDAR_SET, &execution);
  quern_lidar_drive* drive = nullptr;
  quern_lidar_cloud* cloud = nullptr;
  ASSERT_EQ(quern_lidar_drive_open(path("a.qnl").c_str(), &execution, &drive), QUERN_OK);
  ASSERT_EQ(quern_lidar_drive_read(drive, 0, &cloud), QUERN_OK);
  quern_lidar_drive_destroy(drive);
  quern_lidar_cloud_destroy(cloud);
  EXPECT_GT(counts.calls, 10U);
  EXPECT_EQ(counts.held, 0U);
}

}  // namespace
