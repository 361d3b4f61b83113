// Histories through the C interface: drives are added, predict later ones, and are missed with a number of their own.
#include <gtest/gtest.h>

#include <quern/lidar.h>

#include <algorithm>
#include <array>
#include <bit>
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
using quern::lidar_test::TestCloud;

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
                     const double* pose = kHome.data(), const quern_lidar_execution* execution = nullptr,
                     double max_error = 0.15) {
    quern_lidar_writer_desc desc = QUERN_LIDAR_WRITER_DESC_INIT;
    desc.mode = QUERN_LIDAR_SET;
    desc.max_error = max_error;
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
  /// Reads frame `index`, which is `scan`, with a history; the number of the call.
  quern_status read(const std::string& file, quern_lidar_history* history, std::uint64_t index = 0,
                    const TestCloud& scan = spinning_scan(32, 900, 50, false)) {
    quern_lidar_drive* drive = nullptr;
    EXPECT_EQ(quern_lidar_drive_open(file.c_str(), nullptr, &drive), QUERN_OK) << quern_lidar_last_error();
    EXPECT_EQ(quern_lidar_drive_set_history(drive, history), QUERN_OK);
    quern_lidar_cloud* cloud = nullptr;
    const quern_status status = quern_lidar_drive_read(drive, index, &cloud);
    problem_ = status == QUERN_OK ? "" : quern_lidar_last_error();
    if (status == QUERN_OK) {
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
  for (const std::uint64_t i : {0, 1, 2})
    EXPECT_EQ(read(path("next.qnl"), history, i, spinning_scan(32, 900, 50 + i, false)), QUERN_OK) << i << problem_;
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

/// Scan `i` of a drive whose second scan is one of nowhere.
TestCloud located_scan(std::uint64_t i) {
  auto cloud = spinning_scan(32, 900, 50 + i, false);
  if (i == 1)
    for (std::size_t k = 0; k < cloud.words.size(); ++k)
      cloud.words[k] = std::bit_cast<std::uint32_t>(std::bit_cast<float>(cloud.words[k]) * (k % 3 == 0 ? 2.7F : 0.6F));
  return cloud;
}

/// Adds these scans, with the poses given or without; what they found.
struct Located {
  std::vector<std::array<double, 12>> poses;  ///< all zeros: none
  quern_lidar_result result = QUERN_LIDAR_RESULT_INIT;
};
Located write_located(const std::string& to, quern_lidar_history* history, const Located* given) {
  Located out;
  quern_lidar_writer_desc desc = QUERN_LIDAR_WRITER_DESC_INIT;
  desc.mode = QUERN_LIDAR_SET;
  desc.max_error = 0.15;
  desc.history = history;
  quern_lidar_writer* writer = nullptr;
  EXPECT_EQ(quern_lidar_writer_open(to.c_str(), &desc, nullptr, &writer), QUERN_OK) << quern_lidar_last_error();
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto cloud = located_scan(i);
    quern_lidar_cloud_desc scan = QUERN_LIDAR_CLOUD_DESC_INIT;
    scan.points = cloud.points();
    scan.xyz = cloud.words.data();
    quern_lidar_frame frame = QUERN_LIDAR_FRAME_INIT;
    if (given != nullptr) {
      if (i == 1) continue;
      frame.pose = given->poses[i].data();
    }
    EXPECT_EQ(quern_lidar_writer_add(writer, &scan, &frame), QUERN_OK) << quern_lidar_last_error();
    std::uint32_t has_pose = 7;
    std::array<double, 12> pose{};
    const std::uint64_t index = given != nullptr ? i / 2 : i;
    EXPECT_EQ(quern_lidar_writer_pose(writer, index, pose.data(), &has_pose), QUERN_OK);
    EXPECT_EQ(has_pose == 0, pose == (std::array<double, 12>{}));
    out.poses.push_back(pose);
    EXPECT_EQ(quern_lidar_writer_pose(writer, index + 1, pose.data(), &has_pose), QUERN_ERROR_INVALID_ARGUMENT);
  }
  EXPECT_EQ(quern_lidar_writer_finish(writer, &out.result), QUERN_OK) << quern_lidar_last_error();
  quern_lidar_writer_destroy(writer);
  return out;
}

TEST_F(LidarHistories, FramesWithoutPoses_FindTheirPlaceAndTellIt) {
  ASSERT_EQ(quern_lidar_history_create(path("streets").c_str(), nullptr), QUERN_OK) << quern_lidar_last_error();
  quern_lidar_history* history = open(path("streets"));
  ASSERT_EQ(write(path("first.qnl"), 1, nullptr, kHome.data(), nullptr, 0.01), QUERN_OK) << problem_;
  ASSERT_NO_FATAL_FAILURE(add(history, path("first.qnl"), 1));
  const Located found = write_located(path("found.qnl"), history, nullptr);
  ASSERT_EQ(found.poses.size(), 3U);
  EXPECT_EQ(found.result.located_frames, 2U);
  for (const std::size_t i : {0, 2})
    for (std::size_t k = 0; k < 12; ++k) EXPECT_NEAR(found.poses[i][k], kHome[k], 0.1) << i << ' ' << k;
  EXPECT_EQ(found.poses[1], (std::array<double, 12>{}));
  for (const std::uint64_t i : {0, 1, 2})
    EXPECT_EQ(read(path("found.qnl"), history, i, located_scan(i)), QUERN_OK) << i << problem_;
  EXPECT_EQ(read(path("found.qnl"), nullptr), QUERN_LIDAR_ERROR_NO_HISTORY);

  quern_lidar_drive* drive = nullptr;
  ASSERT_EQ(quern_lidar_drive_open(path("found.qnl").c_str(), nullptr, &drive), QUERN_OK);
  for (std::uint64_t i = 0; i < 3; ++i) {
    quern_lidar_frame_info info = QUERN_LIDAR_FRAME_INFO_INIT;
    ASSERT_EQ(quern_lidar_drive_inspect(drive, i, &info), QUERN_OK);
    EXPECT_EQ(info.has_pose, i == 1 ? 0U : 1U);
    EXPECT_TRUE(std::equal(found.poses[i].begin(), found.poses[i].end(), info.pose));
  }
  quern_lidar_drive_destroy(drive);

  // The poses that were found come back as they are where they are given.
  const Located given = write_located(path("given.qnl"), history, &found);
  ASSERT_EQ(given.poses.size(), 2U);
  EXPECT_EQ(given.poses[0], found.poses[0]);
  EXPECT_EQ(given.poses[1], found.poses[2]);
  EXPECT_EQ(given.result.located_frames, 0U);
  quern_lidar_history_destroy(history);
}

TEST_F(LidarHistories, GivenAndFoundPoses_AreNotMixed) {
  ASSERT_EQ(quern_lidar_history_create(path("h").c_str(), nullptr), QUERN_OK);
  quern_lidar_history* history = open(path("h"));
  quern_lidar_writer_desc desc = QUERN_LIDAR_WRITER_DESC_INIT;
  desc.history = history;
  quern_lidar_writer* writer = nullptr;
  ASSERT_EQ(quern_lidar_writer_open(path("a.qnl").c_str(), &desc, nullptr, &writer), QUERN_OK);
  const auto cloud = spinning_scan(8, 60, 1, false);
  quern_lidar_cloud_desc scan = QUERN_LIDAR_CLOUD_DESC_INIT;
  scan.points = cloud.points();
  scan.xyz = cloud.words.data();
  quern_lidar_frame frame = QUERN_LIDAR_FRAME_INIT;
  ASSERT_EQ(quern_lidar_writer_add(writer, &scan, &frame), QUERN_OK) << quern_lidar_last_error();
  frame.pose = kHome.data();
  EXPECT_EQ(quern_lidar_writer_add(writer, &scan, &frame), QUERN_ERROR_INVALID_ARGUMENT);
  std::uint32_t has_pose = 1;
  std::array<double, 12> pose{};
  EXPECT_EQ(quern_lidar_writer_pose(writer, 0, pose.data(), &has_pose), QUERN_OK);
  EXPECT_EQ(has_pose, 0U);
  EXPECT_EQ(quern_lidar_writer_pose(writer, 0, nullptr, &has_pose), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_lidar_writer_pose(nullptr, 0, pose.data(), &has_pose), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_lidar_writer_finish(writer, nullptr), QUERN_OK);
  quern_lidar_writer_destroy(writer);
  quern_lidar_history_destroy(history);
}

TEST_F(LidarHistories, Parity_BringsDamagedFilesBack) {
  ASSERT_EQ(quern_lidar_history_create(path("h").c_str(), nullptr), QUERN_OK);
  quern_lidar_history* history = open(path("h"));
  ASSERT_EQ(write(path("a.qnl"), 1, nullptr), QUERN_OK) << problem_;
  ASSERT_NO_FATAL_FAILURE(add(history, path("a.qnl"), 1));
  quern_lidar_repair repair = QUERN_LIDAR_REPAIR_INIT;
  EXPECT_EQ(quern_lidar_history_repair(history, &repair), QUERN_OK) << quern_lidar_last_error();
  EXPECT_EQ(repair.sets, 0U);
  quern_lidar_parity parity = QUERN_LIDAR_PARITY_INIT;
  const quern_status made = quern_lidar_history_make_parity(history, 2, 1, &parity);
  if (made == QUERN_ERROR_UNSUPPORTED) {
    quern_lidar_history_destroy(history);
    GTEST_SKIP() << "built without ISA-L";
  }
  ASSERT_EQ(made, QUERN_OK) << quern_lidar_last_error();
  EXPECT_EQ(parity.data_files, 2U);
  EXPECT_EQ(parity.parity_files, 1U);
  EXPECT_EQ(parity.guarded_files, 2U);
  EXPECT_EQ(parity.made_sets, 1U);
  EXPECT_GT(parity.parity_bytes, 0U);
  EXPECT_EQ(quern_lidar_history_make_parity(history, 0, 0, &parity), QUERN_OK) << quern_lidar_last_error();
  EXPECT_EQ(parity.made_sets, 0U);
  EXPECT_EQ(parity.data_files, 2U);
  EXPECT_EQ(quern_lidar_history_make_parity(history, 64, 1, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_lidar_history_make_parity(history, 3, 0, nullptr), QUERN_ERROR_INVALID_ARGUMENT);

  fs::path segment;
  for (const auto& file : fs::directory_iterator(folder_ / "h" / "segments")) segment = file.path();
  const auto damage = [&] {
    std::fstream file(segment, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(fs::file_size(segment) / 2));
    file.write("damage", 6);
  };
  damage();
  repair = QUERN_LIDAR_REPAIR_INIT;
  EXPECT_EQ(quern_lidar_history_repair(history, &repair), QUERN_OK) << quern_lidar_last_error();
  EXPECT_EQ(repair.mended_files, 1U);
  EXPECT_EQ(repair.damaged_files, 0U);
  EXPECT_EQ(repair.guarded_files, 2U);
  // The same handle reads what came back.
  ASSERT_EQ(write(path("b.qnl"), 50, history), QUERN_OK) << problem_;
  EXPECT_EQ(read(path("b.qnl"), history), QUERN_OK) << problem_;

  std::uint64_t removed = 0;
  EXPECT_EQ(quern_lidar_history_drop_parity(history, &removed), QUERN_OK) << quern_lidar_last_error();
  EXPECT_EQ(removed, 1U);
  damage();
  repair = QUERN_LIDAR_REPAIR_INIT;
  EXPECT_EQ(quern_lidar_history_repair(history, &repair), QUERN_ERROR_CORRUPT);
  EXPECT_EQ(repair.damaged_files, 1U);
  const std::string damaged = quern_lidar_last_error();
  EXPECT_EQ(damaged.find(path("h")), damaged.rfind(path("h"))) << damaged;
  EXPECT_NE(damaged.find(path("h")), std::string::npos) << damaged;
  EXPECT_NE(damaged.find("; restore it from a copy"), std::string::npos) << damaged;
  EXPECT_EQ(quern_lidar_history_repair(nullptr, &repair), QUERN_ERROR_INVALID_ARGUMENT);
  repair.struct_size = 1;
  EXPECT_EQ(quern_lidar_history_repair(history, &repair), QUERN_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(quern_lidar_history_drop_parity(nullptr, nullptr), QUERN_ERROR_INVALID_ARGUMENT);
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
  // An empty history has no place for any frame.
  EXPECT_EQ(write(path("a.qnl"), 1, history, nullptr), QUERN_OK) << problem_;
  EXPECT_EQ(read(path("a.qnl"), nullptr, 0, spinning_scan(32, 900, 1, false)), QUERN_OK) << problem_;
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

/// Memory that refuses once, after `left` more requests.
struct Refusing {
  static constexpr std::uint64_t kNever = UINT64_MAX;
  std::uint64_t left = kNever;
  std::uint64_t requests = 0;

  quern_lidar_execution execution() {
    quern_lidar_execution out = QUERN_LIDAR_EXECUTION_INIT;
    out.allocator.user = this;
    out.allocator.allocate = [](void* user, std::size_t bytes, std::size_t alignment) -> void* {
      auto& self = *static_cast<Refusing*>(user);
      ++self.requests;
      if (self.left != kNever && self.left-- == 0) return nullptr;
      return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    };
    out.allocator.release = [](void*, void* memory, std::size_t, std::size_t) { std::free(memory); };
    return out;
  }
};

/// Four frames, a key frame each second one. `fail(add, frame)` calls add(), which returns its number, until it
/// succeeds.
template <class Fail>
std::vector<char> write_refused(const std::string& to, Refusing& memory, const Fail& fail) {
  const quern_lidar_execution execution = memory.execution();
  quern_lidar_writer_desc desc = QUERN_LIDAR_WRITER_DESC_INIT;
  desc.mode = QUERN_LIDAR_SET;
  desc.max_error = 0.15;
  desc.key_frames = 2;
  quern_lidar_writer* writer = nullptr;
  EXPECT_EQ(quern_lidar_writer_open(to.c_str(), &desc, &execution, &writer), QUERN_OK);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto cloud = spinning_scan(12, 60, i, false);
    quern_lidar_cloud_desc scan = QUERN_LIDAR_CLOUD_DESC_INIT;
    scan.points = cloud.points();
    scan.xyz = cloud.words.data();
    quern_lidar_frame frame = QUERN_LIDAR_FRAME_INIT;
    frame.pose = kHome.data();
    fail([&] { return quern_lidar_writer_add(writer, &scan, &frame); }, i);
  }
  EXPECT_EQ(quern_lidar_writer_finish(writer, nullptr), QUERN_OK) << quern_lidar_last_error();
  quern_lidar_writer_destroy(writer);
  std::ifstream file(to, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(LidarHistories, FramesThatMemoryRefused_MakeTheSameDriveWhenTheyAreAddedAgain) {
  Refusing memory;
  std::array<std::uint64_t, 4> requests{};
  const auto whole = write_refused(path("whole.qnl"), memory, [&](const auto& add, std::size_t i) {
    memory.requests = 0;
    ASSERT_EQ(add(), QUERN_OK) << quern_lidar_last_error();
    requests[i] = memory.requests;
  });
  const auto again = write_refused(path("again.qnl"), memory, [&](const auto& add, std::size_t i) {
    // Each of the last requests, for they follow the encoding, and some of the others. Room that a refused call made
    // stays, so later calls ask less often.
    constexpr std::uint64_t kLast = 32;
    ASSERT_GT(requests[i], kLast);
    const std::uint64_t last = requests[i] - kLast;
    const std::uint64_t step = last / 6 + 1;
    quern_status status = QUERN_ERROR_OUT_OF_MEMORY;
    for (std::uint64_t k = 0; status == QUERN_ERROR_OUT_OF_MEMORY; k += k >= last ? 1 : std::min(step, last - k)) {
      ASSERT_LE(k, requests[i]);
      memory.left = k;
      status = add();
      memory.left = Refusing::kNever;
      EXPECT_TRUE(status != QUERN_OK || k > last) << k;
    }
    ASSERT_EQ(status, QUERN_OK) << quern_lidar_last_error();
  });
  EXPECT_TRUE(whole == again);
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
