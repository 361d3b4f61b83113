// Histories in trouble: damaged copies beside good ones, files that the system refuses, collections while others read,
// and folders that somebody else filled.
#include <gtest/gtest.h>

#include <cerrno>

#include "lidar/history/history_tiles.h"
#include "tests/unit_lidar_drive/street.h"

namespace quern::lidar {
namespace {

/// Where the first part of a segment begins: behind magic, version, size and hash.
constexpr std::size_t kFirstPart = 30;

TEST(Part_OfTwoCopies, IsReadAndKeptWhereOneIsDamaged) {
  for (const bool first : {true, false}) {
    Street street;
    ASSERT_TRUE(street.add(wall(50'000)).ok());
    const auto cells = street.read().value();
    const auto part = write_cells(cells);
    // Most of the second segment is needed by nobody, so a collection takes it apart.
    street.write_segment({part, Vector<std::uint8_t>(4000, 7)});
    const auto segments = street.files_in("segments");
    ASSERT_EQ(segments.size(), 2U);
    street.flip(segments[first ? 0 : 1], kFirstPart);
    const auto read = street.read();
    ASSERT_TRUE(read.ok()) << street.report.problem;
    EXPECT_EQ(*read, cells);
    ASSERT_TRUE(street.collect({}).ok()) << street.report.problem;
    const auto kept = street.read();
    ASSERT_TRUE(kept.ok()) << street.report.problem;
    EXPECT_EQ(*kept, cells);
  }
}

TEST(Collection_OfADamagedPart, LeavesItAndGoesOn) {
  Street street;
  ASSERT_TRUE(street.add(wall(50'000)).ok());
  const auto part = write_cells(street.read().value());
  for (const std::string& file : street.files_in("segments")) ASSERT_TRUE(street.disk.remove(file).ok());
  street.write_segment({part, Vector<std::uint8_t>(4000, 7)});
  const auto segment = street.files_in("segments");
  street.flip(segment[0], kFirstPart);
  EXPECT_TRUE(street.collect({}).ok()) << street.report.problem;
  EXPECT_EQ(street.files_in("segments"), segment);
}

TEST(Tile_ThatIsDamaged, BeginsAnewWithTheNextScans) {
  Street street;
  ASSERT_TRUE(street.add(wall(50'000)).ok());
  const auto cells = street.read().value();
  street.flip(street.files_in("segments")[0], kFirstPart);
  EXPECT_FALSE(street.read().ok());
  const auto added = street.add(wall(50'000));
  ASSERT_TRUE(added.ok()) << street.report.problem;
  EXPECT_EQ(added->new_cells, cells.size());
  ASSERT_EQ(street.report.notes.size(), 1U);
  EXPECT_NE(street.report.notes[0].find("tile 0,0,0"), String::npos) << street.report.notes[0];
  const auto read = street.read();
  ASSERT_TRUE(read.ok()) << street.report.problem;
  EXPECT_EQ(*read, cells);
}

TEST(Epoch_ThatIsDamaged, GoesWithACollectionThatIsTold) {
  Street street;
  ASSERT_TRUE(street.add(wall(50'000)).ok());
  const auto cells = street.read().value();
  ASSERT_TRUE(street.add(wall(90'000)).ok());
  street.flip(street.files_in("epochs")[1], 20);
  EXPECT_FALSE(street.add(wall(50'000)).ok());
  const Status refused = street.collect({});
  EXPECT_TRUE(is_lost(refused)) << street.report.problem;
  EXPECT_EQ(street.files_in("epochs").size(), 2U);
  CollectHistory options;
  options.damaged_too = true;
  options.keep = 1;
  ASSERT_TRUE(street.collect(options).ok()) << street.report.problem;
  const auto left = street.files_in("epochs");
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(street.read().value(), cells);
  EXPECT_TRUE(street.add(wall(90'000)).ok()) << street.report.problem;
  EXPECT_TRUE(check_history(*street.history, street.report)->damage.empty());
  // Where no epoch would stay, nothing goes.
  for (const std::string& file : street.files_in("epochs")) street.flip(file, 20);
  const auto before = street.disk.all_files();
  EXPECT_FALSE(street.collect(options).ok());
  EXPECT_EQ(street.disk.all_files(), before);
}

TEST(History_ThatTheSystemRefuses, IsNeitherMissingNorMadeAgain) {
  Street street;
  ASSERT_TRUE(street.add(wall(50'000)).ok());
  const std::string options = "/streets/history";
  const auto bytes = street.disk.bytes_of(options);
  for (const char* const refused : {"streets/history", "streets/segments/"}) {
    street.disk.on_open([&](std::string_view path) {
      return path.find(refused) == std::string_view::npos ? Status() : Status(StatusCode::io_error, "{0}", EACCES);
    });
    if (refused == std::string_view("streets/history")) {
      EXPECT_FALSE(History::init(street.disk, kRoot, {400, 0}, street.report).ok());
      EXPECT_EQ(street.disk.bytes_of(options), bytes);
      EXPECT_FALSE(History::open(street.disk, kRoot, street.report).ok());
    } else {
      const Status status = street.read().status();
      EXPECT_EQ(status.code(), StatusCode::io_error);
      EXPECT_FALSE(is_lost(status));
      EXPECT_FALSE(street.add(wall(50'000)).ok());
      EXPECT_FALSE(street.collect({}).ok());
    }
    EXPECT_NE(street.report.problem.find("Permission denied"), String::npos) << street.report.problem;
  }
  street.disk.on_open({});
  EXPECT_TRUE(street.read().ok());
}

TEST(Reader_DuringACollection, FindsThePartWhereItWent) {
  Street street;
  ASSERT_TRUE(street.add(wall(50'000)).ok());
  const std::string segment = street.files_in("segments")[0];
  const std::string moved = segment.substr(0, segment.size() - 32) + std::string(32, 'f');
  street.disk.on_open([&](std::string_view path) {
    if (path.find("/segments/") != std::string_view::npos) (void)street.disk.rename(segment, moved);
    return Status();
  });
  EXPECT_TRUE(street.read().ok()) << street.report.problem;
  EXPECT_EQ(street.files_in("segments"), std::vector<std::string>{moved});
}

TEST(Check_OfMissingParts, TellsEachOnceAndLooksOnce) {
  Street street;
  ASSERT_TRUE(street.add(wall(20'000, 2000)).ok());  // many tiles
  const std::string gone = street.files_in("segments")[0];
  ASSERT_TRUE(street.add(wall(-90'000)).ok());
  ASSERT_TRUE(street.disk.remove(gone).ok());
  const auto first = street.history->read(street.history->epochs(street.report)->front(), street.report);
  ASSERT_GT(first->tiles.size(), 5U);
  std::size_t opened = 0;
  street.disk.on_open([&](std::string_view path) {
    opened += path.find("/segments/") != std::string_view::npos ? 1 : 0;
    return Status();
  });
  const auto check = check_history(*street.history, street.report);
  ASSERT_TRUE(check.ok());
  EXPECT_EQ(check->damage.size(), first->tiles.size());
  EXPECT_LE(opened, 6U);  // and not once for each part
}

TEST(Folder_OfTemporaryFiles, LosesWhatWritersMakeAndNothingElse) {
  Street street;
  for (const char* const name : {"segment", "epoch", "history", "thesis.tex"})
    ASSERT_TRUE(street.disk.create(storage::join({kRoot, "/tmp/", name})).ok());
  ASSERT_TRUE(street.history->lock(street.report).ok());
  EXPECT_EQ(street.files_in("tmp"), std::vector<std::string>{"streets/tmp/thesis.tex"});
}

TEST(Segment_ThatIsNotFinished, LeavesNoFile) {
  Street street;
  {
    SegmentWriter writer(street.disk, street.history->new_segment_path());
    const Vector<std::uint8_t> part(10);
    ASSERT_TRUE(writer.add(storage::content_hash(part), part, street.report).ok());
    EXPECT_EQ(street.files_in("tmp").size(), 1U);
  }
  EXPECT_TRUE(street.files_in("tmp").empty());
}

TEST(Tiles_OfTheSameCells, AreWrittenOnce) {
  Street street;
  Vector<UnitPoint> points = {{40'000, 50'000, 0}, {40'000 + kTileUnits, 50'000, 0}};
  const auto added = street.add(points);
  ASSERT_TRUE(added.ok());
  EXPECT_EQ(added->tiles, 2U);
  const auto segments = street.history->segments(street.report);
  ASSERT_EQ(segments->size(), 1U);
  ASSERT_EQ(segments->front().parts.size(), 1U);
  EXPECT_EQ(added->new_bytes, segments->front().parts[0].bytes);
}

/// An epoch of one tile with these parts.
Epoch epoch_of(std::initializer_list<Vector<Cell>> parts, std::uint64_t number = 1) {
  Epoch epoch;
  epoch.number = number;
  epoch.cell_units = 200;
  EpochTile tile;
  for (const auto& cells : parts) {
    const auto bytes = write_cells(cells);
    tile.parts.push_back({storage::content_hash(bytes), cells.size(), bytes.size()});
  }
  epoch.tiles.push_back(tile);
  return epoch;
}

TEST(Tile_WithCellsTwice, IsCorrupt) {
  EXPECT_TRUE(read_epoch(write_epoch(epoch_of({{1, 2}, {3}}))).ok());
  EXPECT_EQ(read_epoch(write_epoch(epoch_of({{1, 2}, {1, 2}}))).status().code(), StatusCode::corrupt);
  Street street;
  street.write_segment({write_cells(Vector<Cell>{1, 2}), write_cells(Vector<Cell>{2, 3})});
  ASSERT_TRUE(street.history->publish_epoch(epoch_of({{1, 2}, {2, 3}}), street.report).ok());
  EXPECT_EQ(street.read().status().code(), StatusCode::corrupt);
}

TEST(Part_OfMoreBytesThanItsCellsTake, IsNotRead) {
  Street street;
  Vector<Cell> many(5000);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = i;
  street.write_segment({write_cells(many)});
  Epoch epoch = epoch_of({many});
  epoch.tiles[0].parts[0].cells = 3;
  ASSERT_TRUE(street.history->publish_epoch(epoch, street.report).ok());
  EXPECT_FALSE(street.read().ok());
  EXPECT_NE(street.report.problem.find("is damaged"), String::npos) << street.report.problem;
}

TEST(Tiles_BeyondTheMemory, AreRefusedBeforeTheyAreRead) {
  Street street;
  const auto added = street.add(wall(50'000));
  ASSERT_TRUE(added.ok());
  HistoryTiles small(History::open(street.disk, kRoot, street.report).value(), 1000, 1000);
  std::size_t opened = 0;
  street.disk.on_open([&](std::string_view path) {
    opened += path.find("/segments/") != std::string_view::npos ? 1 : 0;
    return Status();
  });
  const SensorRays rays;
  ScanPredictor predictor(rays, Pose(), false);
  const Status status = small.add_tiles(added->epoch.root, 3, Pose(), predictor);
  EXPECT_EQ(status.code(), StatusCode::memory_limit);
  EXPECT_EQ(opened, 0U);
}

TEST(KnownPoints_OfTiles_BeyondTheMemory, AreRefused) {
  Street street;
  const auto added = street.add(wall(50'000));  // each of the 60 points in a cube of its own
  ASSERT_TRUE(added.ok());
  const SensorRays rays{{0, codec::lidar::kOne >> 4}, {{-1000, 0}, {1000, 0}}};
  ASSERT_TRUE(are_rays(rays));
  const auto code = [&](std::uint64_t most_bytes, bool knows) {
    HistoryTiles tiles(History::open(street.disk, kRoot, street.report).value(), 1 << 20, most_bytes);
    ScanPredictor predictor(rays, Pose(), knows);
    return tiles.add_tiles(added->epoch.root, 3, Pose(), predictor).code();
  };
  EXPECT_EQ(code(60 * 64, false), StatusCode::ok);
  EXPECT_EQ(code(60 * 64, true), StatusCode::memory_limit);
  EXPECT_EQ(code(60 * 300, true), StatusCode::ok);
}

TEST(Addition_BeyondTheMemory, IsRefused) {
  Addition addition(200, 2000);
  const auto points = wall(50'000);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(addition.add(Pose(), points).ok());  // the same cells
  EXPECT_EQ(addition.add(Pose(), wall(90'000)).code(), StatusCode::memory_limit);
}

TEST(Epoch_OfTheLargestNumber, IsTheLast) {
  Street street;
  street.write_segment({write_cells(Vector<Cell>{1, 2})});
  ASSERT_TRUE(street.history->publish_epoch(epoch_of({{1, 2}}, Epoch::kMostNumber), street.report).ok());
  EXPECT_EQ(street.add(wall(50'000)).status().code(), StatusCode::invalid_argument);
}

}  // namespace
}  // namespace quern::lidar
