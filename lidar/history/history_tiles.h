// A history as a source of predictions, with tiles that were read last in memory.
#pragma once

#include <list>
#include <utility>

#include "lidar/history/history.h"
#include "lidar/predict/tile_source.h"

namespace quern::lidar {

/// One thread at a time.
class HistoryTiles final : public TileSource {
 public:
  /// Keeps about `memory_bytes` of tiles. Tiles around one pose that take more than `most_bytes` are refused with
  /// `memory_limit` before they are read; known points that do, after the tile that brings them.
  HistoryTiles(History history, std::uint64_t memory_bytes, std::uint64_t most_bytes = UINT64_MAX)
      : history_(std::move(history)), memory_(memory_bytes), most_bytes_(most_bytes) {}

  Status add_tiles(const ContentHash& epoch, std::uint64_t reach, const Pose& pose, ScanPredictor& predictor) override;
  /// The points of these tiles, from the corner of the tile in which `pose` stands.
  Result<Vector<UnitPoint>> points_around(const ContentHash& epoch, std::uint64_t reach, const Pose& pose);
  /// Fails where the epoch is lost.
  Status check_epoch(const ContentHash& root);
  History& history() { return history_; }
  /// What the last failure was about, naming the tile.
  const Report& report() const { return report_; }

 private:
  struct Kept {
    ContentHash epoch;
    TileKey key;
    SeenFrame points;
  };
  static std::uint64_t bytes_of(const Kept& kept) {
    return kept.points.points.size() * sizeof(UnitPoint) + sizeof(Kept);
  }

  /// Fails with `memory_limit` where they have too many cells.
  Result<Vector<const EpochTile*>> fitting_tiles(const Epoch& epoch, std::uint64_t reach, const Pose& pose);
  /// Fails with `memory_limit`.
  Status too_large(std::uint64_t count, const char* what);
  Result<const Epoch*> epoch_of(const ContentHash& root);
  Result<const SeenFrame*> points_of(const ContentHash& root, const Epoch& epoch, const EpochTile& tile);

  History history_;
  static constexpr std::size_t kMostEpochs = 2;  ///< in memory

  std::uint64_t memory_;
  std::uint64_t most_bytes_;
  std::uint64_t used_ = 0;
  std::list<std::pair<ContentHash, Epoch>> epochs_;  ///< the last used first
  std::list<Kept> kept_;                             ///< the last used first
  Report report_;
};

}  // namespace quern::lidar
