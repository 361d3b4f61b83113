// A small history on a simulated disk, for tests of its care and its parity.
#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "lidar/history/addition.h"
#include "lidar/history/care.h"
#include "tests/faults/simulated_disk.h"

namespace quern::lidar {

using quern::testing::SimulatedDisk;

inline const String kRoot = "streets";

inline Vector<UnitPoint> wall(std::int64_t x, std::int64_t count = 60) {
  Vector<UnitPoint> points;
  for (std::int64_t i = 0; i < count; ++i) points.push_back({x + 300 * i, 40'000 + 900 * i, 250 * i});
  return points;
}

/// A history on its disk, and what the last failure said.
struct Street {
  Street() {
    EXPECT_TRUE(History::init(disk, kRoot, {200, 0}, report).ok()) << report.problem;
    history.emplace(History::open(disk, kRoot, report).value());
  }

  Result<Added> add(std::span<const UnitPoint> points) {
    report = {};
    QUERN_ASSIGN_OR_RETURN(const auto lock, history->lock(report));
    Addition addition(history->options().cell_units);
    QUERN_RETURN_IF_ERROR(addition.add(Pose(), points));
    return addition.publish(*history, report);
  }
  Status collect(const CollectHistory& options) {
    report = {};
    QUERN_ASSIGN_OR_RETURN(const auto lock, history->lock(report));
    return collect_history(*history, options, report).status();
  }
  /// Reads the only tile of the newest epoch as another process does.
  Result<Vector<Cell>> read() {
    report = {};
    QUERN_ASSIGN_OR_RETURN(auto reader, History::open(disk, kRoot, report));
    QUERN_ASSIGN_OR_RETURN(const auto epoch, reader.newest(report));
    EXPECT_TRUE(epoch && epoch->tiles.size() == 1);
    return reader.read_tile(*epoch, epoch->tiles[0], report);
  }
  std::vector<std::string> files_in(const std::string& folder) {
    std::vector<std::string> out;
    for (const std::string& file : disk.all_files())
      if (file.find("streets/" + folder + "/") != std::string::npos) out.push_back(file);
    return out;
  }
  void flip(const std::string& file, std::size_t at) { disk.bytes_of(file)[at] ^= 1; }
  /// A segment of these parts.
  void write_segment(std::initializer_list<Vector<std::uint8_t>> parts) {
    SegmentWriter writer(disk, history->new_segment_path());
    for (const auto& part : parts) EXPECT_TRUE(writer.add(storage::content_hash(part), part, report).ok());
    EXPECT_TRUE(history->publish_segment(writer.finish(report).value(), report).ok());
  }

  SimulatedDisk disk;
  Report report;
  std::optional<History> history;
};

}  // namespace quern::lidar
