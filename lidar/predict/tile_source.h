// Where predictions get what earlier drives saw.
#pragma once

#include <cstdint>

#include <quern/status.h>

#include "lidar/predict/scan_predictor.h"
#include "storage/content_hash.h"

namespace quern::lidar {

class TileSource {
 public:
  virtual ~TileSource() = default;
  /// Adds the points of an epoch's tiles at most `reach` tiles away from where `pose` stands. Fails where one of them
  /// is missing or damaged.
  virtual Status add_tiles(const storage::ContentHash& epoch, std::uint64_t reach, const Pose& pose,
                           ScanPredictor& predictor) = 0;
};

}  // namespace quern::lidar
