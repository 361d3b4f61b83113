// Scans become the next epoch of a history.
#pragma once

#include <map>

#include "lidar/history/places.h"

namespace quern::lidar {

struct Added {
  EpochName epoch;
  std::uint64_t new_cells = 0;
  std::uint64_t new_bytes = 0;      ///< of the segment's parts
  std::uint64_t tiles = 0;          ///< of the epoch
  std::uint64_t evicted_tiles = 0;  ///< left out because of the limit
};

/// Collects the cells that scans met. The order of scans and of their points does not matter to the bytes. Memory grows
/// with the cells, not with the points.
class Addition {
 public:
  /// The cells take at most about `most_bytes` of memory.
  explicit Addition(std::uint32_t cell_units, std::uint64_t most_bytes = UINT64_MAX)
      : cell_units_(cell_units), most_cells_(most_bytes / kCellBytes) {}

  /// Points in the sensor's coordinates; those nearer than 2.8 m are the vehicle and left out. Fails with
  /// `memory_limit` where the cells take too much. May throw std::bad_alloc.
  Status add(const Pose& pose, std::span<const UnitPoint> points);
  std::uint64_t frames() const { return frames_; }

  /// Publishes the epoch behind the newest one; the caller holds the history's lock. Tiles that were not seen for the
  /// longest time are left out until the epoch keeps the history's limit.
  Result<Added> publish(History& history, Report& report);

 private:
  struct Cells {
    Vector<Cell> cells;  ///< the first `sorted` rise
    std::size_t sorted = 0;
  };
  static void sort(Cells& cells);

  static constexpr std::uint64_t kCellBytes = 32;  ///< of memory: a cell twice while its list grows, and its part

  std::uint64_t cells() const;

  std::uint32_t cell_units_;
  std::uint64_t most_cells_;
  std::uint64_t frames_ = 0;
  std::map<TileKey, Cells> tiles_;
  Vector<Place> places_;  ///< where scans were made, those near to an earlier one left out
};

}  // namespace quern::lidar
