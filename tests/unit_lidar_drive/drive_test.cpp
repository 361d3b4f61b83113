// Drives: any frame without the others, damage and cut files as errors, the same bytes for any number of threads.
#include <gtest/gtest.h>

#include "libcompress/core/task_runner.h"
#include "lidar/drive/drive.h"
#include "tests/unit_lidar_drive/made_clouds.h"

namespace quern::lidar {
namespace {

using namespace quern::lidar_test;

constexpr std::uint64_t kNoLimit = UINT64_C(1) << 28;

struct MadeDrive {
  std::vector<PointCloud> clouds;
  Vector<std::uint8_t> bytes;
};

MadeDrive make_drive(std::size_t frames, TaskRunner& runner) {
  MadeDrive out;
  std::vector<Vector<std::uint8_t>> descriptions, scans;
  for (std::size_t i = 0; i < frames; ++i) {
    out.clouds.push_back(small_scan(200 + 10 * static_cast<unsigned>(i), i + 1));
    auto coded = encode_frame(out.clouds.back(), {Mode::exact, 0}, runner);
    EXPECT_TRUE(coded.ok());
    coded->description.name = "scan " + String(1, static_cast<char>('a' + i));
    coded->description.time_stamp = static_cast<std::int64_t>(i) * 100'000'000;
    descriptions.push_back(write_description(coded->description));
    scans.push_back(coded->scan);
  }
  std::vector<StoredFrame> stored;
  for (std::size_t i = 0; i < frames; ++i) stored.push_back({descriptions[i], scans[i]});
  VectorSink sink(out.bytes);
  const auto written = write_drive(stored, Execution(), sink);
  EXPECT_TRUE(written.ok());
  EXPECT_EQ(*written, out.bytes.size());
  return out;
}

/// Counts what is read.
class CountingSource final : public ByteSource {
 public:
  explicit CountingSource(std::span<const std::uint8_t> bytes) : inner_(bytes) {}
  Result<std::size_t> read(std::span<std::uint8_t> out) override {
    const auto count = inner_.read(out);
    if (count.ok()) read_ += *count;
    return count;
  }
  bool can_seek() const override { return true; }
  Status seek(std::uint64_t offset) override { return inner_.seek(offset); }
  std::uint64_t size() const override { return inner_.size(); }
  std::uint64_t position() const override { return inner_.position(); }
  std::uint64_t bytes_read() const { return read_; }

 private:
  MemorySource inner_;
  std::uint64_t read_ = 0;
};

TEST(Drive_EachFrame_ComesBackAlone, AnyOrder) {
  SerialRunner runner;
  const MadeDrive made = make_drive(5, runner);
  CountingSource source(made.bytes);
  const auto drive = Drive::open(source, Execution());
  ASSERT_TRUE(drive.ok()) << drive.status().text();
  EXPECT_EQ((*drive)->frames(), 5U);
  const std::uint64_t opened = source.bytes_read();
  EXPECT_LT(opened, 1000U);
  for (const std::uint64_t i : {3U, 0U, 4U, 1U, 2U}) {
    const std::uint64_t before = source.bytes_read();
    const auto cloud = (*drive)->read(i, kNoLimit, runner);
    ASSERT_TRUE(cloud.ok());
    EXPECT_TRUE(same_cloud(*cloud, made.clouds[static_cast<std::size_t>(i)]));
    const auto frame = (*drive)->describe(i);
    ASSERT_TRUE(frame.ok());
    EXPECT_EQ(frame->description.name, "scan " + String(1, static_cast<char>('a' + i)));
    EXPECT_EQ(frame->description.time_stamp, static_cast<std::int64_t>(i) * 100'000'000);
    EXPECT_LT(source.bytes_read() - before, 2 * (frame->stored_bytes + 200)) << "reads more than its own frame";
  }
  EXPECT_EQ((*drive)->read(5, kNoLimit, runner).status().code(), StatusCode::invalid_argument);
  EXPECT_TRUE((*drive)->check_bytes().ok());
}

TEST(Drive_AnyThreads_HaveTheSameBytes, OneTwoFive) {
  SerialRunner serial;
  const auto expected = make_drive(3, serial).bytes;
  for (const std::size_t threads : {2U, 5U}) {
    Execution execution;
    execution.threads = threads;
    RunnerHandle runner(execution);
    EXPECT_EQ(make_drive(3, runner.get()).bytes, expected);
  }
}

TEST(Drive_CutAnywhere_IsAnError, EveryLength) {
  SerialRunner runner;
  const auto bytes = make_drive(2, runner).bytes;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    MemorySource source(std::span<const std::uint8_t>(bytes).first(n));
    const auto drive = Drive::open(source, Execution());
    ASSERT_FALSE(drive.ok()) << n;
    const auto code = drive.status().code();
    EXPECT_TRUE(code == StatusCode::truncated || code == StatusCode::corrupt || code == StatusCode::bad_magic ||
                code == StatusCode::checksum_mismatch)
        << n << " " << drive.status().text();
  }
}

TEST(Drive_ChangedByte_IsNeverAnotherCloud, EveryByteOfASmallOne) {
  SerialRunner runner;
  const MadeDrive made = make_drive(1, runner);
  std::uint64_t unseen = 0;
  for (std::size_t at = 0; at < made.bytes.size(); ++at) {
    auto bytes = made.bytes;
    bytes[at] ^= 0x10;
    MemorySource source(bytes);
    const auto drive = Drive::open(source, Execution());
    if (!drive.ok()) continue;
    const bool whole = (*drive)->check_bytes().ok();
    const auto cloud = (*drive)->read(0, kNoLimit, runner);
    if (cloud.ok()) {
      EXPECT_TRUE(same_cloud(*cloud, made.clouds[0])) << at;
    }
    unseen += whole ? 1 : 0;
  }
  EXPECT_EQ(unseen, 0U);
}

TEST(Drive_OtherRecords_AreNoDrive, OneSection) {
  RecordLayout layout;
  layout.items = 1;
  RecordSection section;
  section.name = "lidar.scan";
  section.form = SectionForm::bytes;
  layout.sections.push_back(section);
  const std::uint8_t value = 7;
  const std::span<const std::uint8_t> text(&value, 1);
  const SectionData data{{}, {&text, 1}};
  Vector<std::uint8_t> bytes;
  VectorSink sink(bytes);
  ASSERT_TRUE(compress_records(layout, {&data, 1}, RecordOptions(), Execution(), sink).ok());
  MemorySource source(bytes);
  EXPECT_EQ(Drive::open(source, Execution()).status().code(), StatusCode::corrupt);
  EXPECT_EQ(write_drive({}, Execution(), sink).status().code(), StatusCode::invalid_argument);
}

}  // namespace
}  // namespace quern::lidar
