#include "lidar/drive/posed_frames.h"

#include <utility>

namespace quern::lidar {

Result<CodedFrame> PosedFrames::encode(const PointCloud& cloud, const FrameOptions& options, const Pose& pose,
                                       TaskRunner& runner) {
  const bool is_key = since_key_ == 0;
  const bool is_posed = cloud.kind == CoordinateKind::f32;
  if (is_key || !is_posed) {
    last_.clear();
    rays_.reset();
  }
  if (is_key && is_posed) rays_ = find_rays(unit_points(cloud.words));
  Vector<UnitPoint> predicted;
  if (!is_key) predicted = prediction(pose);
  FrameOptions with = options;
  with.prediction = predicted;
  QUERN_ASSIGN_OR_RETURN(CodedFrame frame, encode_frame(cloud, with, runner));
  QUERN_ASSIGN_OR_RETURN(const auto info, codec::lidar::scan_info(frame.scan));
  frame.description.pose = pose;
  if (is_key) frame.description.rays = rays_;
  if (info.predicted) {
    frame.description.key_distance = since_key_;
    for (std::size_t i = 0; i < last_.size(); ++i) frame.description.references.push_back(i + 1);
    frame.prediction = std::move(predicted);
  }
  since_key_ = since_key_ + 1 == key_every_ ? 0 : since_key_ + 1;
  if (rays_ && since_key_ != 0) QUERN_RETURN_IF_ERROR(remember(frame, pose, runner));
  return frame;
}

Vector<UnitPoint> PosedFrames::prediction(const Pose& pose) const {
  if (!rays_) return {};
  ScanPredictor predictor(*rays_, pose);
  for (const SeenFrame& frame : last_) predictor.add(frame);
  return predictor.seen();
}

Status PosedFrames::remember(const CodedFrame& frame, const Pose& pose, TaskRunner& runner) {
  QUERN_ASSIGN_OR_RETURN(const auto cloud, decode_frame(frame.description, frame.scan, codec::lidar::kMostPoints,
                                                        runner, frame.prediction));
  last_.push_front({pose, unit_points(cloud.words)});
  if (last_.size() > kReferences) last_.pop_back();
  return {};
}

}  // namespace quern::lidar
