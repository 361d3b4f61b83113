// Histories: what goes in comes back, drives are predicted from them within their bound, and what is missing, damaged
// or of another place is told or costs nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lidar/drive/drive.h"
#include "lidar/drive/posed_frames.h"
#include "lidar/history/addition.h"
#include "lidar/history/care.h"
#include "lidar/history/history_tiles.h"
#include "lidar/verify/exact_check.h"
#include "tests/faults/simulated_disk.h"
#include "tests/unit_lidar_drive/golden_drive.h"

namespace quern::lidar {
namespace {

using namespace quern::lidar_test;
using namespace quern::lidar::exact;
using quern::testing::SimulatedDisk;

constexpr std::uint32_t kBound = 1500;
const String kRoot = "streets";

History make_history(SimulatedDisk& disk, std::uint64_t most_bytes = 0) {
  Report report;
  EXPECT_TRUE(History::init(disk, kRoot, {200, most_bytes}, report).ok()) << report.problem;
  return History::open(disk, kRoot, report).value();
}

Added add_points(History& history, const Pose& pose, std::span<const UnitPoint> points) {
  Report report;
  const auto lock = history.lock(report);
  EXPECT_TRUE(lock.ok()) << report.problem;
  Addition addition(history.options().cell_units);
  (void)addition.add(pose, points);
  const auto added = addition.publish(history, report);
  EXPECT_TRUE(added.ok()) << report.problem;
  return added.ok() ? *added : Added();
}

/// Scans 0 and 1 of the posed clouds, which predict the others.
Added add_first_scans(History& history, const Pose& moved = {}) {
  Report report;
  const auto lock = history.lock(report);
  Addition addition(history.options().cell_units);
  for (std::size_t i = 0; i < 2; ++i) {
    Pose pose = posed_poses()[i];
    for (std::size_t axis = 0; axis < 3; ++axis) pose.translation[axis] += moved.translation[axis];
    (void)addition.add(pose, unit_points(posed_clouds()[i].words));
  }
  return addition.publish(history, report).value();
}

struct Coded {
  std::vector<CodedFrame> frames;
  Vector<std::uint8_t> drive;
  std::size_t bytes = 0;
};

/// Scans 2 to 4 as a drive.
Coded encode_last_scans(const UsedHistory& history, std::uint64_t key_every = 2) {
  PosedFrames frames(key_every, history);
  SerialRunner runner;
  Coded out;
  for (std::size_t i = 2; i < 5; ++i) {
    auto frame = frames.encode(posed_clouds()[i], {Mode::set, kBound * UINT64_C(100'000)}, posed_poses()[i], runner);
    EXPECT_TRUE(frame.ok()) << frame.status().text();
    out.frames.push_back(std::move(frame).value());
    out.frames.back().description.name = "frame";
  }
  for (std::size_t first = 0; first < out.frames.size(); first += key_every) {
    std::vector<FrameDescription*> group;
    for (std::size_t i = first; i < std::min(first + key_every, out.frames.size()); ++i)
      group.push_back(&out.frames[i].description);
    drop_unused(group);
  }
  std::vector<Vector<std::uint8_t>> descriptions;
  std::vector<StoredFrame> stored;
  for (const CodedFrame& frame : out.frames) descriptions.push_back(write_description(frame.description));
  for (std::size_t i = 0; i < out.frames.size(); ++i) {
    stored.push_back({descriptions[i], out.frames[i].scan});
    out.bytes += descriptions[i].size() + out.frames[i].scan.size();
  }
  VectorSink sink(out.drive);
  EXPECT_TRUE(write_drive(stored, Execution(), sink).ok());
  return out;
}

void expect_within_bound(const PointCloud& decoded, std::size_t cloud) {
  const auto source = exact_points(posed_clouds()[cloud].words, false);
  const auto points = exact_points(decoded.words, false);
  EXPECT_EQ(violations(source, points, {kBound, 10000}), 0U);
  EXPECT_EQ(violations(points, source, {kBound, 10000}), 0U);
}

TEST(Cells_WrittenAndRead, AreTheSame) {
  std::mt19937_64 random(7);
  const auto side = static_cast<std::uint64_t>(kTileUnits) / 200;
  Vector<Cell> cells;
  const WorldPoints world(Pose{Pose().quaternion, {-5, 7, 1'000'000}});
  for (int i = 0; i < 500; ++i) {
    const UnitPoint point = {static_cast<std::int64_t>(random() % 300'000),
                             static_cast<std::int64_t>(random() % 300'000),
                             static_cast<std::int64_t>(random() % 20'000)};
    const auto placed = world.place(point, 200);
    ASSERT_TRUE(placed.has_value());
    EXPECT_EQ(placed->first, (TileKey{point[0] < 5 ? -1 : 0, 0, 3}));
    const auto centre = cell_centres({&placed->second, 1}, 200).front();
    const Pose tile = pose_of(placed->first);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t there = point[axis] + std::array<std::int64_t, 3>{-5, 7, 1'000'000}[axis];
      EXPECT_LE(std::abs(tile.translation[axis] + centre[axis] - there), 100) << axis;
    }
    cells.push_back(placed->second);
  }
  std::sort(cells.begin(), cells.end());
  cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
  const auto bytes = write_cells(cells);
  const auto back = read_cells(bytes, 200);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, cells);
  EXPECT_LT(side, UINT64_C(1) << 13);
  for (std::size_t cut = 0; cut < bytes.size(); cut += 7)
    EXPECT_FALSE(read_cells(std::span(bytes).first(cut), 200).ok());
  EXPECT_FALSE(read_cells(bytes, 20'000).ok());  // a tile has 16 such cells a side
}

TEST(History_OfSeveralEpochs, KeepsEachAsItWas) {
  SimulatedDisk disk;
  History history = make_history(disk);
  std::vector<Added> added;
  std::vector<std::set<Cell>> states;
  std::set<Cell> all;
  std::mt19937_64 random(11);
  // More epochs than a tile has parts, so that parts are merged.
  for (int day = 0; day < 12; ++day) {
    Vector<UnitPoint> points;
    for (int i = 0; i < 40; ++i)
      points.push_back(
          {50'000 + static_cast<std::int64_t>(random() % 5'000), 60'000, static_cast<std::int64_t>(random() % 900)});
    for (const UnitPoint& point : points) all.insert(WorldPoints(Pose()).place(point, 200)->second);
    added.push_back(add_points(history, Pose(), points));
    states.push_back(all);
  }
  Report report;
  History again = History::open(disk, kRoot, report).value();
  const auto names = again.epochs(report).value();
  ASSERT_EQ(names.size(), added.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(names[i], added[i].epoch);
    const Epoch epoch = again.read(names[i].root, report).value();
    ASSERT_EQ(epoch.tiles.size(), 1U);
    EXPECT_LE(epoch.tiles[0].parts.size(), EpochTile::kMostParts);
    EXPECT_EQ(epoch.cells(), states[i].size());
    const auto cells = again.read_tile(epoch, epoch.tiles[0], report).value();
    EXPECT_TRUE(std::equal(cells.begin(), cells.end(), states[i].begin(), states[i].end()));
    if (i > 0) {
      EXPECT_EQ(epoch.parent, names[i - 1].root);
    }
  }
  lidar::CollectHistory options;
  options.keep = 2;
  options.roots = {names[4].root};
  const auto collected = collect_history(again, options, report);
  ASSERT_TRUE(collected.ok()) << report.problem;
  EXPECT_EQ(collected->removed.size(), 9U);
  const auto check = check_history(again, report);
  ASSERT_TRUE(check.ok() && check->damage.empty());
  EXPECT_EQ(check->epochs, 3U);
  const Epoch kept = again.read(names[4].root, report).value();
  EXPECT_EQ(again.read_tile(kept, kept.tiles[0], report).value().size(), states[4].size());
  EXPECT_FALSE(again.read(names[0].root, report).ok());
}

TEST(History_WithALimit, LeavesOutWhatWasNotSeenForLongest) {
  SimulatedDisk disk;
  History history = make_history(disk, 400);
  Report report;
  for (std::int64_t day = 0; day < 6; ++day) {
    Vector<UnitPoint> points;
    for (std::int64_t i = 0; i < 40; ++i) points.push_back({40'000, 1'000 * i, 40 * i * i % 30'000});
    const auto added = add_points(history, Pose{Pose().quaternion, {day * kTileUnits, 0, 0}}, points);
    const Epoch epoch = history.read(added.epoch.root, report).value();
    EXPECT_LE(epoch.bytes(), 400U);
    ASSERT_FALSE(epoch.tiles.empty());
    EXPECT_EQ(epoch.tiles.back().last_seen, static_cast<std::uint64_t>(day) + 1);
    EXPECT_EQ(epoch.tiles.back().key.x, day);
    if (day == 5) {
      EXPECT_GT(added.evicted_tiles, 0U);
    }
  }
}

TEST(Drive_WithAHistory, IsSmallerAndKeepsTheBound) {
  SimulatedDisk disk;
  History history = make_history(disk);
  const auto added = add_first_scans(history);
  HistoryTiles tiles(history, 1 << 20);
  const auto plain = encode_last_scans({});
  const auto with = encode_last_scans({&tiles, added.epoch.root});
  EXPECT_LT(with.bytes, plain.bytes);
  ASSERT_TRUE(with.frames[0].description.reach.has_value());
  EXPECT_EQ(with.frames[0].description.epoch, added.epoch.root);
  // From the disk as another process finds it.
  SimulatedDisk later = disk.after(quern::testing::Survival::durable, 1);
  Report report;
  HistoryTiles found(History::open(later, kRoot, report).value(), 1000);
  MemorySource source(with.drive);
  const auto drive = Drive::open(source, Execution());
  ASSERT_TRUE(drive.ok());
  SerialRunner runner;
  EXPECT_FALSE((*drive)->read(0, 1 << 20, runner).ok());
  EXPECT_TRUE((*drive)->misses_history());
  (*drive)->set_history(&found);
  for (const std::uint64_t i : {2U, 0U, 1U}) {
    const auto back = (*drive)->read(i, 1 << 20, runner);
    ASSERT_TRUE(back.ok()) << back.status().text() << found.report().problem;
    expect_within_bound(*back, i + 2);
  }
}

TEST(Drive_WithAHistoryOfAnotherPlace, CostsNextToNothing) {
  const auto plain = encode_last_scans({});
  std::mt19937_64 random(3);
  for (int kind = 0; kind < 4; ++kind) {
    SimulatedDisk disk;
    History history = make_history(disk);
    Added added;
    if (kind == 0) {
      added = add_first_scans(history, Pose{Pose().quaternion, {100 * kTileUnits, 0, 0}});
    } else if (kind == 1) {
      added = add_first_scans(history, Pose{Pose().quaternion, {11'000, -9'000, 5'000}});
    } else if (kind == 2) {
      added = add_first_scans(history, Pose{Pose().quaternion, {700, 0, 300}});
    } else {
      Vector<UnitPoint> noise;
      for (int i = 0; i < 4000; ++i)
        noise.push_back({static_cast<std::int64_t>(random() % 400'000) - 200'000,
                         static_cast<std::int64_t>(random() % 400'000) - 200'000,
                         static_cast<std::int64_t>(random() % 40'000) - 20'000});
      added = add_points(history, posed_poses()[0], noise);
    }
    HistoryTiles tiles(history, 1 << 20);
    const auto with = encode_last_scans({&tiles, added.epoch.root});
    EXPECT_LE(with.bytes, plain.bytes + plain.bytes / 100 + 16) << kind;
    MemorySource source(with.drive);
    const auto drive = Drive::open(source, Execution());
    ASSERT_TRUE(drive.ok());
    (*drive)->set_history(&tiles);
    SerialRunner runner;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const auto back = (*drive)->read(i, 1 << 20, runner);
      ASSERT_TRUE(back.ok()) << back.status().text();
      expect_within_bound(*back, static_cast<std::size_t>(i) + 2);
    }
  }
}

TEST(Drive_WhoseHistoryIsDamaged, SaysWhichTile) {
  SimulatedDisk disk;
  History history = make_history(disk);
  const auto added = add_first_scans(history);
  HistoryTiles tiles(history, 1 << 20);
  const auto with = encode_last_scans({&tiles, added.epoch.root});
  MemorySource source(with.drive);
  SerialRunner runner;
  const auto files = disk.all_files();
  std::mt19937_64 random(5);
  std::size_t flips = 0;
  for (const std::string& file : files) {
    if (file.find("/lock") != std::string::npos) continue;
    const auto bytes = disk.bytes_of(file);
    for (int i = 0; i < 40; ++i) {
      const std::size_t at = static_cast<std::size_t>(random() % bytes.size());
      disk.bytes_of(file)[at] ^= static_cast<std::uint8_t>(1U << random() % 8);
      ++flips;
      Report report;
      auto damaged = History::open(disk, kRoot, report);
      if (damaged.ok()) {
        const auto check = check_history(*damaged, report);
        EXPECT_TRUE(!check.ok() || !check->damage.empty()) << file << " byte " << at;
        HistoryTiles found(std::move(damaged).value(), 1 << 20);
        const auto drive = Drive::open(source, Execution());
        ASSERT_TRUE(drive.ok());
        (*drive)->set_history(&found);
        for (std::uint64_t k = 0; k < 3; ++k) {
          const auto back = (*drive)->read(k, 1 << 20, runner);
          if (back.ok()) {
            expect_within_bound(*back, static_cast<std::size_t>(k) + 2);
          } else {
            EXPECT_TRUE((*drive)->misses_history());
            EXPECT_NE(found.report().problem.find(file.find("/epochs/") != std::string::npos ? "epoch" : "tile"),
                      String::npos)
                << found.report().problem;
          }
        }
      } else {
        EXPECT_NE(report.problem.find("history"), String::npos);
      }
      disk.bytes_of(file) = bytes;
    }
  }
  EXPECT_GE(flips, 100U);
}

TEST(Epoch_OfHostileBytes, IsAStatus) {
  SimulatedDisk disk;
  History history = make_history(disk);
  const auto added = add_first_scans(history);
  Report report;
  const auto bytes = write_epoch(history.read(added.epoch.root, report).value());
  std::mt19937_64 random(9);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(read_epoch(std::span(bytes).first(cut)).ok()) << cut;
  for (int i = 0; i < 2000; ++i) {
    auto changed = bytes;
    for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
    if (const auto epoch = read_epoch(changed); epoch.ok()) {
      EXPECT_EQ(write_epoch(*epoch), changed);
    }
  }
}

TEST(History_WhereThereIsOne, IsNotMadeAgain) {
  SimulatedDisk disk;
  History history = make_history(disk);
  Report report;
  EXPECT_FALSE(History::init(disk, kRoot, {200, 0}, report).ok());
  EXPECT_NE(report.problem.find("already"), String::npos);
  EXPECT_FALSE(History::init(disk, "other", {333, 0}, report).ok());
  EXPECT_FALSE(History::open(disk, "nowhere", report).ok());
  EXPECT_NE(report.problem.find("there is no history"), String::npos);
}

}  // namespace
}  // namespace quern::lidar
