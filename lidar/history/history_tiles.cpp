#include "lidar/history/history_tiles.h"

#include <algorithm>

namespace quern::lidar {

Result<const Epoch*> HistoryTiles::epoch_of(const ContentHash& root) {
  if (const auto found = epochs_.find(root); found != epochs_.end()) return &found->second;
  QUERN_ASSIGN_OR_RETURN(auto epoch, history_.read(root, report_));
  return &epochs_.emplace(root, std::move(epoch)).first->second;
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

Status HistoryTiles::add_tiles(const ContentHash& root, std::uint64_t reach, const Pose& pose,
                               ScanPredictor& predictor) {
  report_ = {};
  QUERN_ASSIGN_OR_RETURN(const Epoch* const epoch, epoch_of(root));
  for (const EpochTile* const tile : tiles_around(*epoch, pose, reach)) {
    QUERN_ASSIGN_OR_RETURN(const SeenFrame* const points, points_of(root, *epoch, *tile));
    predictor.add(*points);
  }
  return {};
}

}  // namespace quern::lidar
