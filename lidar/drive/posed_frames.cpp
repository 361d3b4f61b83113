#include "lidar/drive/posed_frames.h"

#include <algorithm>
#include <utility>

namespace quern::lidar {
namespace {

/// What descriptions take when a history is used: the epoch's hash and two small numbers.
constexpr std::size_t kHistoryBytes = 18;

}  // namespace

Result<CodedFrame> PosedFrames::encode(const PointCloud& cloud, const FrameOptions& options, const Pose& pose,
                                       TaskRunner& runner) {
  const bool is_key = since_key_ == 0;
  const bool is_posed = cloud.kind == CoordinateKind::f32;
  const bool forgets = is_key || !is_posed;
  std::optional<SensorRays> found;
  if (is_key && is_posed) found = find_rays(unit_points(cloud.words));
  const std::optional<SensorRays>& rays = forgets ? found : rays_;
  const std::deque<SeenFrame> none;
  const std::deque<SeenFrame>& before = forgets ? none : last_;
  QUERN_ASSIGN_OR_RETURN(CodedFrame frame, encode_smallest(cloud, options, pose, rays, before, runner));
  frame.description.pose = pose;
  if (is_key) {
    frame.description.rays = rays;
    if (history_.tiles != nullptr && rays) frame.description.epoch = history_.epoch;
  }
  const std::uint64_t since_key = since_key_ + 1 == key_every_ ? 0 : since_key_ + 1;
  const bool remembers = rays && since_key != 0;
  if (remembers) last_.push_front({pose, unit_points(frame.words)});
  // Nothing below fails: a frame counts where it is returned, and only there.
  since_key_ = since_key;
  if (forgets) {
    rays_ = std::move(found);
    last_.resize(remembers ? 1 : 0);
  }
  if (last_.size() > kReferences) last_.pop_back();
  frame.words = {};
  return frame;
}

Result<CodedFrame> PosedFrames::encode_smallest(const PointCloud& cloud, const FrameOptions& options, const Pose& pose,
                                                const std::optional<SensorRays>& rays,
                                                const std::deque<SeenFrame>& before, TaskRunner& runner) {
  if (!rays) return encode_frame(cloud, options, runner);
  ScanPredictor predictor(*rays, pose, true);
  for (const SeenFrame& frame : before) predictor.add(frame);
  const auto by_frames = predictor.seen();
  Vector<codec::lidar::PredictedPoint> by_both;
  Vector<codec::lidar::Prediction> predictions = {by_frames};
  if (history_.tiles != nullptr) {
    QUERN_RETURN_IF_ERROR(history_.tiles->add_tiles(history_.epoch, history_.reach, pose, predictor));
    by_both = predictor.seen();
    if (by_both != by_frames) predictions.push_back(by_both);
  }
  QUERN_ASSIGN_OR_RETURN(auto frames, encode_frames(cloud, options, runner, predictions));
  CodedFrame* best = &frames.front();
  static_assert(kHistoryBytes < codec::lidar::kClearlyLarger);
  const auto is_smaller = [&](const CodedFrame& with) {
    return !with.prediction.empty() && (best->scan.empty() || with.scan.size() + kHistoryBytes < best->scan.size());
  };
  if (frames.size() > 1 && is_smaller(frames[1])) {
    best = &frames[1];
    best->description.reach = history_.reach;
  }
  if (!best->prediction.empty()) {
    best->description.known = true;
    best->description.key_distance = since_key_;
    for (std::size_t i = 0; i < before.size(); ++i) best->description.references.push_back(i + 1);
  }
  return std::move(*best);
}

void drop_unused(std::span<FrameDescription* const> group) {
  if (group.empty()) return;
  const auto any = [&](const auto& has) { return std::any_of(group.begin(), group.end(), has); };
  if (!any([](const FrameDescription* one) { return one->is_predicted(); })) group.front()->rays.reset();
  if (!any([](const FrameDescription* one) { return one->reach.has_value(); })) group.front()->epoch.reset();
}

}  // namespace quern::lidar
