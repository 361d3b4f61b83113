// Encodes the frames of a drive whose poses are known, in order, each predicted from those before it.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "lidar/drive/frame_coding.h"
#include "lidar/predict/scan_predictor.h"

namespace quern::lidar {

class PosedFrames {
 public:
  /// Every `key_every`-th frame, 1 to kMostKeyDistance, is a key frame: nothing predicts it.
  explicit PosedFrames(std::uint64_t key_every) : key_every_(key_every) {}

  /// As encode_frame(), for the next frame. A prediction that does not make it smaller is not used; nor is there one for
  /// coordinates other than binary32, or while no rings are found in the key frame (see find_rays()).
  Result<CodedFrame> encode(const PointCloud& cloud, const FrameOptions& options, const Pose& pose, TaskRunner& runner);

 private:
  static constexpr std::size_t kReferences = 4;

  Vector<UnitPoint> prediction(const Pose& pose) const;
  Status remember(const CodedFrame& frame, const Pose& pose, TaskRunner& runner);

  std::uint64_t key_every_;
  std::uint64_t since_key_ = 0;
  std::optional<SensorRays> rays_;
  std::deque<SeenFrame> last_;  ///< the newest first
};

}  // namespace quern::lidar
