#include "lidar/history/history_tiles.h"

#include <algorithm>

namespace quern::lidar {
namespace {

/// A known point is in the predictor, in the prediction and, with its site and cube, in the codec.
constexpr std::uint64_t kKnownBytes = 2 * sizeof(codec::lidar::PredictedPoint) + 150;

}  // namespace

Result<const Epoch*> HistoryTiles::epoch_of(const ContentHash& root) {
  const auto found = std::find_if(epochs_.begin(), epochs_.end(), [&](const auto& one) { return one.first == root; });
  if (found != epochs_.end()) {
    epochs_.splice(epochs_.begin(), epochs_, found);
    return &epochs_.front().second;
  }
  QUERN_ASSIGN_OR_RETURN(auto epoch, history_.read(root, report_));
  epochs_.emplace_front(root, std::move(epoch));
  if (epochs_.size() > kMostEpochs) epochs_.pop_back();
  return &epochs_.front().second;
}

Status HistoryTiles::check_epoch(const ContentHash& root) {
  report_ = {};
  return epoch_of(root).status();
}

Result<const SeenFrame*> HistoryTiles::points_of(const ContentHash& root, const Epoch& epoch, const EpochTile& tile) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& kept) { return kept.key == tile.key && kept.epoch == root; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return &kept_.front().points;
  }
  QUERN_ASSIGN_OR_RETURN(const auto cells, history_.read_tile(epoch, tile, report_));
  kept_.push_front({root, tile.key, {pose_of(tile.key), cell_centres(cells, epoch.cell_units)}});
  used_ += bytes_of(kept_.front());
  while (used_ > memory_ && kept_.size() > 1) {
    used_ -= bytes_of(kept_.back());
    kept_.pop_back();
  }
  return &kept_.front().points;
}

Result<Vector<const EpochTile*>> HistoryTiles::fitting_tiles(const Epoch& epoch, std::uint64_t reach,
                                                             const Pose& pose) {
  auto tiles = tiles_around(epoch, pose, reach);
  std::uint64_t cells = 0;
  for (const EpochTile* const tile : tiles) cells += tile->cells();
  // A cell is read as a number and becomes a point, and perhaps a known one.
  if (cells > most_bytes_ / (sizeof(Cell) + sizeof(UnitPoint) + sizeof(codec::lidar::PredictedPoint)))
    return too_large(cells, " cells");
  return tiles;
}

Status HistoryTiles::too_large(std::uint64_t count, const char* what) {
  return storage::fail(report_, StatusCode::memory_limit,
                       storage::join({history_.root(), ": the tiles around a frame have ", storage::decimal(count),
                                      what, ", which is more than memory allows"}));
}

Status HistoryTiles::add_tiles(const ContentHash& root, std::uint64_t reach, const Pose& pose,
                               ScanPredictor& predictor) {
  report_ = {};
  QUERN_ASSIGN_OR_RETURN(const Epoch* const epoch, epoch_of(root));
  QUERN_ASSIGN_OR_RETURN(const auto tiles, fitting_tiles(*epoch, reach, pose));
  for (const EpochTile* const tile : tiles) {
    QUERN_ASSIGN_OR_RETURN(const SeenFrame* const points, points_of(root, *epoch, *tile));
    predictor.add_cells(*points, epoch->cell_units);
    if (predictor.known_points() > most_bytes_ / kKnownBytes)
      return too_large(predictor.known_points(), " known points");
  }
  return {};
}

Result<Vector<UnitPoint>> HistoryTiles::points_around(const ContentHash& root, std::uint64_t reach, const Pose& pose) {
  report_ = {};
  QUERN_ASSIGN_OR_RETURN(const Epoch* const epoch, epoch_of(root));
  QUERN_ASSIGN_OR_RETURN(const auto tiles, fitting_tiles(*epoch, reach, pose));
  const TileKey middle = tile_of(pose);
  Vector<UnitPoint> out;
  for (const EpochTile* const tile : tiles) {
    QUERN_ASSIGN_OR_RETURN(const SeenFrame* const seen, points_of(root, *epoch, *tile));
    const UnitPoint corner{(tile->key.x - middle.x) * kTileUnits, (tile->key.y - middle.y) * kTileUnits,
                           (tile->key.z - middle.z) * kTileUnits};
    for (const UnitPoint& point : seen->points)
      out.push_back({point[0] + corner[0], point[1] + corner[1], point[2] + corner[2]});
  }
  return out;
}

}  // namespace quern::lidar
