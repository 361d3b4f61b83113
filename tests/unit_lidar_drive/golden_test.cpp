// The committed drive decodes to what it did when it was written, and its frames are still written the same.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/faults/simulated_disk.h"
#include "tests/unit_lidar_drive/golden_drive.h"

namespace quern::lidar_test {
namespace {

Vector<std::uint8_t> read(const char* name) {
  std::string path = QUERN_GOLDEN_DRIVES "/";
  path += name;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << name;
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

TEST(GoldenDrive_Committed_DecodesTheSame, AllFrames) {
  const auto bytes = read("drive.qnl");
  EXPECT_FALSE(bytes.empty());
  EXPECT_EQ(decoded_drive(bytes), read("drive.points"));
}

TEST(GoldenDrive_Posed_DecodesAndIsWrittenTheSame, AllFrames) {
  const auto bytes = read("posed.qnl");
  EXPECT_EQ(make_posed_drive(), bytes);
  EXPECT_EQ(decoded_drive(bytes), read("posed.points"));
}

/// Range images, of which one predicts points, and messages: coordinates 4, file formats 6 and 7.
TEST(GoldenDrive_OfOtherKinds_DecodesAndIsWrittenTheSame, AllFrames) {
  const auto bytes = read("kinds.qnl");
  EXPECT_EQ(make_kinds_drive(), bytes);
  EXPECT_EQ(decoded_drive(bytes), read("kinds.points"));
  MemorySource source(bytes);
  const auto drive = lidar::Drive::open(source, Execution());
  ASSERT_TRUE(drive.ok()) << drive.status().text();
  ASSERT_EQ((*drive)->frames(), 6U);
  const auto image = (*drive)->describe(0), points = (*drive)->describe(1), message = (*drive)->describe(4);
  ASSERT_TRUE(image.ok() && points.ok() && message.ok());
  EXPECT_EQ(image->description.kind, lidar::CodedKind::projected);
  EXPECT_EQ(points->description.format, lidar::FileFormat::range_image);
  EXPECT_TRUE(points->scan.predicted);
  EXPECT_EQ(points->description.references, Vector<std::uint64_t>{1});
  EXPECT_EQ(message->description.format, lidar::FileFormat::point_cloud2);
}

/// Predicted by points without weights, as scans of version 1 are, and without known points, as those of version 2 are;
/// no encoder writes them any more.
TEST(GoldenDrive_Former_DecodesTheSame, AllFrames) {
  EXPECT_EQ(decoded_drive(read("former_posed.qnl")), read("former_posed.points"));
  EXPECT_EQ(decoded_drive(read("weighed_posed.qnl")), read("weighed_posed.points"));
  lidar::Report report;
  auto history = lidar::History::open(storage::system_files(), QUERN_GOLDEN_DRIVES "/history", report);
  ASSERT_TRUE(history.ok()) << report.problem;
  lidar::HistoryTiles tiles(std::move(history).value(), 1 << 20);
  EXPECT_EQ(decoded_drive(read("former_history.qnl"), &tiles), read("former_history.points"));
  EXPECT_EQ(decoded_drive(read("weighed_history.qnl"), &tiles), read("weighed_history.points"));
}

TEST(GoldenDrive_OfAHistory_DecodesAndIsWrittenTheSame, AllFrames) {
  lidar::Report report;
  const String root = QUERN_GOLDEN_DRIVES "/history";
  auto history = lidar::History::open(storage::system_files(), root, report);
  ASSERT_TRUE(history.ok()) << report.problem;
  const auto epochs = history->epochs(report);
  ASSERT_TRUE(epochs.ok() && epochs->size() == 2) << report.problem;
  quern::testing::SimulatedDisk disk;
  const auto made = make_golden_history(disk, "made");
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*made, epochs->back().root);
  lidar::HistoryTiles tiles(std::move(history).value(), 1 << 20);
  const auto bytes = read("history.qnl");
  EXPECT_EQ(make_history_drive(tiles, *made), bytes);
  EXPECT_EQ(decoded_drive(bytes, &tiles), read("history.points"));
}

TEST(GoldenDrive_Frames_AreWrittenTheSame, DescriptionsAndScans) {
  const auto bytes = read("drive.qnl");
  MemorySource source(bytes);
  const auto drive = lidar::Drive::open(source, Execution());
  ASSERT_TRUE(drive.ok()) << drive.status().text();
  const auto frames = golden_frames();
  ASSERT_EQ((*drive)->frames(), frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    SCOPED_TRACE(i);
    const auto stored = (*drive)->read_coded(i);
    ASSERT_TRUE(stored.ok());
    const auto made = code(frames[i]);
    EXPECT_EQ(stored->scan, made.scan);
    EXPECT_EQ(write_description(stored->description), write_description(made.description));
  }
}

}  // namespace
}  // namespace quern::lidar_test
