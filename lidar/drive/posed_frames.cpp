#include "lidar/drive/posed_frames.h"

#include <algorithm>
#include <utility>

namespace quern::lidar {
namespace {

/// What descriptions take when a history is used: the epoch's hash and two small numbers.
constexpr std::size_t kHistoryBytes = 18;

Result<CodedFrame> encode_with(const PointCloud& cloud, const FrameOptions& options, Vector<UnitPoint> predicted,
                               TaskRunner& runner) {
  FrameOptions with = options;
  with.prediction = predicted;
  QUERN_ASSIGN_OR_RETURN(CodedFrame frame, encode_frame(cloud, with, runner));
  QUERN_ASSIGN_OR_RETURN(const auto info, codec::lidar::scan_info(frame.scan));
  if (info.predicted) frame.prediction = std::move(predicted);
  return frame;
}

}  // namespace

Result<CodedFrame> PosedFrames::encode(const PointCloud& cloud, const FrameOptions& options, const Pose& pose,
                                       TaskRunner& runner) {
  const bool is_key = since_key_ == 0;
  const bool is_posed = cloud.kind == CoordinateKind::f32;
  if (is_key || !is_posed) {
    last_.clear();
    rays_.reset();
  }
  if (is_key && is_posed) rays_ = find_rays(unit_points(cloud.words));
  QUERN_ASSIGN_OR_RETURN(CodedFrame frame, encode_smallest(cloud, options, pose, runner));
  frame.description.pose = pose;
  if (is_key) {
    frame.description.rays = rays_;
    if (history_.tiles != nullptr && rays_) frame.description.epoch = history_.epoch;
  }
  since_key_ = since_key_ + 1 == key_every_ ? 0 : since_key_ + 1;
  if (rays_ && since_key_ != 0) QUERN_RETURN_IF_ERROR(remember(frame, pose, runner));
  return frame;
}

Result<CodedFrame> PosedFrames::encode_smallest(const PointCloud& cloud, const FrameOptions& options, const Pose& pose,
                                                TaskRunner& runner) {
  if (!rays_) return encode_with(cloud, options, {}, runner);
  ScanPredictor predictor(*rays_, pose);
  for (const SeenFrame& frame : last_) predictor.add(frame);
  const auto by_frames = predictor.seen();
  QUERN_ASSIGN_OR_RETURN(CodedFrame frame, encode_with(cloud, options, by_frames, runner));
  if (!frame.prediction.empty()) {
    frame.description.key_distance = since_key_;
    for (std::size_t i = 0; i < last_.size(); ++i) frame.description.references.push_back(i + 1);
  }
  if (history_.tiles == nullptr) return frame;
  QUERN_RETURN_IF_ERROR(history_.tiles->add_tiles(history_.epoch, history_.reach, pose, predictor));
  auto by_both = predictor.seen();
  if (by_both == by_frames) return frame;
  QUERN_ASSIGN_OR_RETURN(CodedFrame with, encode_with(cloud, options, std::move(by_both), runner));
  if (with.prediction.empty() || with.scan.size() + kHistoryBytes >= frame.scan.size()) return frame;
  with.description.reach = history_.reach;
  with.description.key_distance = since_key_;
  for (std::size_t i = 0; i < last_.size(); ++i) with.description.references.push_back(i + 1);
  return with;
}

Status PosedFrames::remember(const CodedFrame& frame, const Pose& pose, TaskRunner& runner) {
  QUERN_ASSIGN_OR_RETURN(const auto cloud, decode_frame(frame.description, frame.scan, codec::lidar::kMostPoints,
                                                        runner, frame.prediction));
  last_.push_front({pose, unit_points(cloud.words)});
  if (last_.size() > kReferences) last_.pop_back();
  return {};
}

void drop_unused(std::span<FrameDescription* const> group) {
  if (group.empty()) return;
  const auto any = [&](const auto& has) { return std::any_of(group.begin(), group.end(), has); };
  if (!any([](const FrameDescription* one) { return one->is_predicted(); })) group.front()->rays.reset();
  if (!any([](const FrameDescription* one) { return one->reach.has_value(); })) group.front()->epoch.reset();
}

}  // namespace quern::lidar
