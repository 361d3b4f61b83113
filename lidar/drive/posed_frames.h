// Encodes the frames of a drive whose poses are known, in order, each predicted from those before it and from what
// earlier drives saw.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "lidar/drive/frame_coding.h"
#include "lidar/predict/tile_source.h"

namespace quern::lidar {

/// The epoch of a history that predicts frames.
struct UsedHistory {
  TileSource* tiles = nullptr;  ///< null: none
  storage::ContentHash epoch;
  std::uint64_t reach = 3;  ///< tiles around the one that a frame stands in, at most kMostReach
};

class PosedFrames {
 public:
  /// Every `key_every`-th frame, 1 to kMostKeyDistance, is a key frame: no frame predicts it. What `history` has
  /// outlives this.
  explicit PosedFrames(std::uint64_t key_every, const UsedHistory& history = {})
      : key_every_(key_every), history_(history) {}

  /// As encode_frame(), for the next frame. It is coded alone, with the frames before it, and with the history, too,
  /// and the smallest is kept; coordinates other than binary32, and those of key frames in which no rings are found
  /// (see find_rays()), are coded alone. Fails where the history does. May throw
  /// std::bad_alloc. After either it is as it was before.
  Result<CodedFrame> encode(const PointCloud& cloud, const FrameOptions& options, const Pose& pose, TaskRunner& runner);

  /// Whether the next frame is a key frame.
  bool is_key_next() const { return since_key_ == 0; }

 private:
  static constexpr std::size_t kReferences = 4;

  /// `rays`: of the key frame; `before`: frames that predict this one, the newest first.
  Result<CodedFrame> encode_smallest(const PointCloud& cloud, const FrameOptions& options, const Pose& pose,
                                     const std::optional<SensorRays>& rays, const std::deque<SeenFrame>& before,
                                     TaskRunner& runner);

  std::uint64_t key_every_;
  UsedHistory history_;
  std::uint64_t since_key_ = 0;
  std::optional<SensorRays> rays_;
  std::deque<SeenFrame> last_;  ///< the newest first
};

/// Takes from a key frame what neither it nor the frames behind it need. `group`: these frames, in order.
void drop_unused(std::span<FrameDescription* const> group);

}  // namespace quern::lidar
