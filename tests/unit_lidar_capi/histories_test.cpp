// Histories through the C interface: drives are added, predict later ones, and are missed with a number of their own.
#include <gtest/gtest.h>

#include <quern/lidar.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit_lidar/clouds.h"

namespace {

namespace fs = std::filesystem;
using quern::lidar_test::spinning_scan;

constexpr std::array<double, 12> kHome = {1, 0, 0, 10, 0, 1, 0, 20, 0, 0, 1, 0};

class LidarHistories : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("quern-lidar-history-" + std::to_string(std::rand()) +
                                           testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  /// Three scans of one place, with noise of `seed`, under 15 cm. Returns the number of the first call that failed.
  quern_status write(const std::string& to, std::uint64_t seed, quern_lidar_history* history,
                     const double* pose = kHome.data(), const quern_lidar_execution* execution = nullptr) {
    quern_lidar_writer_desc desc = QUERN_LIDAR_WRITER_DESC_INIT;
    desc.mode = QUERN_LIDAR_SET;
    desc.max_error = 0.15;
    desc.history = history;
    desc.key_frames = 2;
    quern_lidar_writer* writer = nullptr;
    quern_status status = quern_lidar_writer_open(to.c_str(), &desc, execution, &writer);
    for (std::uint64_t i = 0; i < 3 && status == QUERN_OK; ++i) {
      const auto cloud = spinning_scan(32, 900, seed + i, false);
      quern_lidar_cloud_desc scan = QUERN_LIDAR_CLOUD_DESC_INIT;
      scan.points = cloud.points();
      scan.xyz = cloud.words.data();
      quern_lidar_frame frame = QUERN_LIDAR_FRAME_INIT;
      frame.pose = pose;
      status = quern_lidar_writer_add(writer, &scan, &frame);
    }
    if (status == QUERN_OK) status = quern_lidar_writer_finish(writer, nullptr);
    const std::string problem = quern_lidar_last_error();
    quern_lidar_writer_destroy(writer);
    problem_ = problem;
    return status;
  }
  quern_lidar_history* open(const std::string& folder) {
    quern_lidar_history* history = nullptr;
    EXPECT_EQ(quern_lidar_history_open(folder.c_str(), nullptr, &history), QUERN_OK) << quern_lidar_last_error();
    return history;
  }
  void add(quern_lidar_history* history, const std::string& file, std::uint64_t epoch) {
    quern_lidar_drive* drive = nullptr;
    ASSERT_EQ(quern_lidar_drive_open(file.c_str(), nullptr, &drive), QUERN_OK);
    ASSERT_EQ(quern_lidar_drive_set_history(drive, history), QUERN_OK);
    quern_lidar_addition added = QUERN_LIDAR_ADDITION_INIT;
    ASSERT_EQ(quern_lidar_history_add_drive(history, drive, &added), QUERN_OK) << quern_lidar_last_error();
    EXPECT_EQ(added.epoch, epoch);
    EXPECT_EQ(added.frames, 3U);
    EXPECT_GT(added.tiles, 0U);
    EXPECT_EQ(std::string(added.root).size(), 32U);
    quern_lidar_drive_destroy(drive);
  }
  /// Reads frame 0 with a history; the number of the call.
  quern_status read(const std::string& file, quern_lidar_history* history) {
    quern_lidar_drive* drive = nullptr;
    EXPECT_EQ(quern_lidar_drive_open(file.c_str(), nullptr, &drive), QUERN_OK) << quern_lidar_last_error();
    EXPECT_EQ(quern_lidar_drive_set_history(drive, history), QUERN_OK);
    quern_lidar_cloud* cloud = nullptr;
    const quern_status status = quern_lidar_drive_read(drive, 0, &cloud);
    problem_ = status == QUERN_OK ? "" : quern_lidar_last_error();
    if (status == QUERN_OK) {
      const auto scan = spinning_scan(32, 900, 50, false);
      quern_lidar_cloud_desc original = QUERN_LIDAR_CLOUD_DESC_INIT, back = QUERN_LIDAR_CLOUD_DESC_INIT;
      original.points = scan.points();
      original.xyz = scan.words.data();
      quern_lidar_distances distances = QUERN_LIDAR_DISTANCES_INIT;
      EXPECT_EQ(quern_lidar_cloud_get(cloud, &back), QUERN_OK);
      EXPECT_EQ(quern_lidar_measure(&original, &back, nullptr, &distances), QUERN_OK);
      EXPECT_LE(distances.max_forward, 0.15);
      EXPECT_LE(distances.max_backward, 0.15);
    }
    quern_lidar_cloud_destroy(cloud);
    quern_lidar_drive_destroy(drive);
    return status;
  }

  fs::path folder_;
  std::string problem_;
};

TEST_F(LidarHistories, DrivesOfOnePlace_PredictTheNext_AndAreMissedByName) {
  ASSERT_EQ(quern_lidar_history_create(path("streets").c_str(), nullptr), QUERN_OK) << quern_lidar_last_error();
  quern_lidar_history* history = open(path("streets"));
  ASSERT_NE(history, nullptr);
  // Nothing to predict from yet: the drive needs no history.
  ASSERT_EQ(write(path("first.qnl"), 1, history), QUERN_OK) << problem_;
  ASSERT_NO_FATAL_FAILURE(add(history, path("first.qnl"), 1));
  ASSERT_EQ(write(path("plain.qnl"), 50, nullptr), QUERN_OK) << problem_;
  ASSERT_EQ(write(path("next.qnl"), 50, history), QUERN_OK) << problem_;
  EXPECT_LT(fs::file_size(path("next.qnl")), fs::file_size(path("plain.qnl")));
  EXPECT_EQ(read(path("plain.qnl"), nullptr), QUERN_OK) << problem_;
  EXPECT_EQ(read(path("next.qnl"), history), QUERN_OK) << problem_;
  EXPECT_EQ(read(path("next.qnl"), nullptr), QUERN_LIDAR_ERROR_NO_HISTORY);
  EXPECT_NE(problem_.find("next.qnl"), std::string::npos) << problem_;
  ASSERT_NO_FATAL_FAILURE(add(history, path("next.qnl"), 2));
  quern_lidar_history_destroy(history);

  ASSERT_EQ(quern_lidar_history_create(path("other").c_str(), nullptr), QUERN_OK);
  history = open(path("other"));
  EXPECT_EQ(read(path("next.qnl"), history), QUERN_LIDAR_ERROR_NO_HISTORY);
  quern_lidar_history_destroy(history);
  fs::remove_all(folder_ / "streets" / "segments");
  fs::create_directory(folder_ / "streets" / "segments");
  history = open(path("streets"));
  EXPECT_EQ(read(path("next.qnl"), history), QUERN_LIDAR_ERROR_NO_HISTORY);
  EXPECT_NE(problem_.find("tile"), std::string::npos) << problem_;
  EXPECT_EQ(write(path("lost.qnl"), 60, history), QUERN_LIDAR_ERROR_NO_HISTORY);
  EXPECT_FALSE(fs::exists(path("lost.qnl")));
  quern_lidar_history_destroy(history);
}

TEST_F(LidarHistories, WrongUse_IsRefusedWithASentence) {
  quern_lidar_history* history = nullptr;
  EXPECT_EQ(quern_lidar_history_open(path("none").c_str(), nullptr, &history), QUERN_ERROR_IO);
  EXPECT_EQ(history, nullptr);
  EXPECT_NE(std::string(quern_lidar_last_error()).find("none"), std::string::npos);
  quern_lidar_history_desc desc = QUERN_LIDAR_HISTORY_DESC_INIT;
  for (const double bad : {0.0, -1.0, 1e9}) {
    desc.resolution = bad;
    EXPECT_EQ(quern_lidar_history_create(path("h").c_str(), &desc), QUERN_ERROR_INVALID_ARGUMENT) << bad;
  }
  ASSERT_EQ(quern_lidar_history_create(path("h").c_str(), nullptr), QUERN_OK);
  EXPECT_NE(quern_lidar_history_create(path("h").c_str(), nullptr), QUERN_OK);
  history = open(path("h"));
  std::array<double, 12> bent = kHome;
  bent[0] = 2;
  EXPECT_EQ(write(path("a.qnl"), 1, history, bent.data()), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(problem_.find("not rigid"), std::string::npos) << problem_;
  EXPECT_EQ(write(path("a.qnl"), 1, history, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(write(path("bare.qnl"), 1, nullptr, nullptr), QUERN_OK) << problem_;
  quern_lidar_drive* drive = nullptr;
  ASSERT_EQ(quern_lidar_drive_open(path("bare.qnl").c_str(), nullptr, &drive), QUERN_OK);
  EXPECT_EQ(quern_lidar_history_add_drive(history, drive, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(std::string(quern_lidar_last_error()).find("frame 0 of the drive has no pose"), std::string::npos);
  EXPECT_EQ(quern_lidar_history_add_drive(nullptr, drive, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  quern_lidar_drive_destroy(drive);
  quern_lidar_history_destroy(history);
  quern_lidar_history_destroy(nullptr);
}

TEST_F(LidarHistories, MixedPoses_AreRefused_AndTheWriterGoesOn) {
  quern_lidar_writer* writer = nullptr;
  quern_lidar_writer_desc desc = QUERN_LIDAR_WRITER_DESC_INIT;
  desc.key_frames = 0;
  EXPECT_EQ(quern_lidar_writer_open(path("a.qnl").c_str(), &desc, nullptr, &writer), QUERN_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(quern_lidar_writer_open(path("a.qnl").c_str(), nullptr, nullptr, &writer), QUERN_OK);
  const auto cloud = spinning_scan(8, 60, 1, false);
  quern_lidar_cloud_desc scan = QUERN_LIDAR_CLOUD_DESC_INIT;
  scan.points = cloud.points();
  scan.xyz = cloud.words.data();
  quern_lidar_frame frame = QUERN_LIDAR_FRAME_INIT;
  frame.pose = kHome.data();
  ASSERT_EQ(quern_lidar_writer_add(writer, &scan, &frame), QUERN_OK) << quern_lidar_last_error();
  EXPECT_EQ(quern_lidar_writer_add(writer, &scan, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(quern_lidar_writer_add(writer, &scan, &frame), QUERN_OK);
  quern_lidar_result result = QUERN_LIDAR_RESULT_INIT;
  ASSERT_EQ(quern_lidar_writer_finish(writer, &result), QUERN_OK) << quern_lidar_last_error();
  EXPECT_EQ(result.frames, 2U);
  quern_lidar_writer_destroy(writer);
}

TEST_F(LidarHistories, CallersMemory_IsUsedAndGivenBack) {
  std::size_t held = 0;
  quern_lidar_execution execution = QUERN_LIDAR_EXECUTION_INIT;
  execution.allocator.user = &held;
  execution.allocator.allocate = [](void* user, std::size_t bytes, std::size_t alignment) -> void* {
    *static_cast<std::size_t*>(user) += bytes;
    return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  };
  execution.allocator.release = [](void* user, void* memory, std::size_t bytes, std::size_t) {
    *static_cast<std::size_t*>(user) -= bytes;
    std::free(memory);
  };
  ASSERT_EQ(quern_lidar_history_create(path("h").c_str(), nullptr), QUERN_OK);
  quern_lidar_history* history = nullptr;
  ASSERT_EQ(quern_lidar_history_open(path("h").c_str(), &execution, &history), QUERN_OK);
  ASSERT_EQ(write(path("a.qnl"), 1, nullptr, kHome.data(), &execution), QUERN_OK) << problem_;
  ASSERT_NO_FATAL_FAILURE(add(history, path("a.qnl"), 1));
  ASSERT_EQ(write(path("b.qnl"), 50, history, kHome.data(), &execution), QUERN_OK) << problem_;
  EXPECT_EQ(read(path("b.qnl"), history), QUERN_OK) << problem_;
  EXPECT_GT(held, 0U);
  quern_lidar_history_destroy(history);
  EXPECT_EQ(held, 0U);
}

/// Memory that is overwritten when it is given back, and handed out no second time.
struct Spoiled {
  std::vector<void*> released;
  ~Spoiled() {
    for (void* const memory : released) std::free(memory);
  }
  quern_lidar_execution execution() {
    quern_lidar_execution out = QUERN_LIDAR_EXECUTION_INIT;
    out.allocator.user = this;
    out.allocator.allocate = [](void*, std::size_t bytes, std::size_t alignment) -> void* {
      return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    };
    out.allocator.release = [](void* user, void* memory, std::size_t bytes, std::size_t) {
      std::memset(memory, 0xDD, bytes);
      static_cast<Spoiled*>(user)->released.push_back(memory);
    };
    return out;
  }
};

TEST_F(LidarHistories, DrivesThatRememberFrames_OutliveCloudsAndHistories) {
  ASSERT_EQ(write(path("a.qnl"), 1, nullptr), QUERN_OK) << problem_;
  Spoiled spoiled;
  const quern_lidar_execution execution = spoiled.execution();
  quern_lidar_drive* drive = nullptr;
  ASSERT_EQ(quern_lidar_drive_open(path("a.qnl").c_str(), &execution, &drive), QUERN_OK);
  for (const std::uint64_t i : {1, 2, 1, 0}) {
    quern_lidar_cloud* cloud = nullptr;
    ASSERT_EQ(quern_lidar_drive_read(drive, i, &cloud), QUERN_OK) << quern_lidar_last_error();
    quern_lidar_cloud_destroy(cloud);
  }
  ASSERT_EQ(quern_lidar_history_create(path("h").c_str(), nullptr), QUERN_OK);
  quern_lidar_history* history = nullptr;
  ASSERT_EQ(quern_lidar_history_open(path("h").c_str(), &execution, &history), QUERN_OK);
  ASSERT_EQ(quern_lidar_history_add_drive(history, drive, nullptr), QUERN_OK) << quern_lidar_last_error();
  quern_lidar_history_destroy(history);
  quern_lidar_cloud* cloud = nullptr;
  ASSERT_EQ(quern_lidar_drive_read(drive, 1, &cloud), QUERN_OK) << quern_lidar_last_error();
  quern_lidar_cloud_destroy(cloud);
  quern_lidar_drive_destroy(drive);
}

}  // namespace
