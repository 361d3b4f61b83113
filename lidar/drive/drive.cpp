// A drive is two sections of strings: descriptions and scans.
#include "lidar/drive/drive.h"

#include <algorithm>
#include <array>

#include "codecs/lidar/point_codec.h"
#include "libcompress/core/task_runner.h"

namespace quern::lidar {
namespace {

struct DriveSection {
  const char* name;
  std::uint16_t tag;
};
constexpr std::array<DriveSection, 2> kSections = {{{"lidar.frame", 1}, {"lidar.scan", 2}}};
/// Drives are stored records: no codec reads their parts.
constexpr RecordRegistry kNoCodecs{std::span<const RecordCodec* const>()};
constexpr std::size_t kDescriptions = 0;
constexpr std::size_t kScans = 1;

RecordLayout layout_of(std::uint64_t frames) {
  RecordLayout layout;
  layout.items = frames;
  layout.segment_items = 1;
  for (const DriveSection& one : kSections) {
    RecordSection section;
    section.name = one.name;
    section.form = SectionForm::bytes;
    section.tag = one.tag;
    layout.sections.push_back(std::move(section));
  }
  return layout;
}

Status no_such_frame(std::uint64_t index, std::uint64_t frames) {
  return Status(StatusCode::invalid_argument, "there is no frame {0}; the drive has {1}, counted from 0",
                static_cast<std::int64_t>(index), static_cast<std::int64_t>(frames));
}

}  // namespace

Result<std::uint64_t> write_drive(std::span<const StoredFrame> frames, const Execution& execution, ByteSink& sink) {
  if (frames.empty()) return Status(StatusCode::invalid_argument, "a drive needs at least one frame");
  Vector<std::span<const std::uint8_t>> descriptions;
  Vector<std::span<const std::uint8_t>> scans;
  for (const StoredFrame& frame : frames) {
    descriptions.push_back(frame.description);
    scans.push_back(frame.scan);
  }
  const std::array<SectionData, 2> data = {SectionData{{}, descriptions}, SectionData{{}, scans}};
  QUERN_ASSIGN_OR_RETURN(const auto report,
                         compress_records(layout_of(frames.size()), data, RecordOptions(), execution, sink));
  return report.output_bytes;
}

bool is_drive(const RecordInfo& info) {
  const RecordLayout& layout = info.layout;
  if (layout.sections.size() != kSections.size() || layout.segment_items != 1 || layout.items == 0) return false;
  for (std::size_t i = 0; i < kSections.size(); ++i) {
    const RecordSection& section = layout.sections[i];
    if (section.form != SectionForm::bytes || section.name != kSections[i].name || section.tag != kSections[i].tag)
      return false;
  }
  return true;
}

Result<std::unique_ptr<Drive>> Drive::open(ByteSource& source, const Execution& execution, std::uint64_t offset) {
  QUERN_ASSIGN_OR_RETURN(auto reader, RecordReader::open(source, kNoCodecs, execution, offset));
  if (!is_drive(reader->info()))
    return Status(StatusCode::corrupt, "the stream holds records, but no frames of a drive");
  return std::unique_ptr<Drive>(new Drive(std::move(reader), execution.memory_limit));
}

Result<CodedFrame> Drive::read_coded(std::uint64_t index) {
  misses_history_ = false;
  QUERN_ASSIGN_OR_RETURN(auto out, read_stored(index));
  if (out.description.is_predicted()) {
    QUERN_ASSIGN_OR_RETURN(out.prediction, predict(index, out.description));
  }
  return out;
}

Result<Vector<codec::lidar::PredictedPoint>> Drive::predict(std::uint64_t index, const FrameDescription& description) {
  if (description.key_distance > index) return Status(StatusCode::corrupt, "a frame's key frame is before the drive");
  QUERN_RETURN_IF_ERROR(read_key(index - description.key_distance));
  QUERN_ASSIGN_OR_RETURN(auto needed, unseen_before(index, description));
  // Frames are decoded in order, and those behind the one that is decoded would have to be kept beside it.
  if (!needed.empty() && !seen_.empty() && needed.back() < seen_.rbegin()->first) {
    seen_.clear();
    QUERN_ASSIGN_OR_RETURN(needed, unseen_before(index, description));
  }
  for (; !needed.empty(); needed.pop_back()) QUERN_RETURN_IF_ERROR(see(needed.back()));
  return predict_by_seen(index, description);
}

Result<Vector<std::uint64_t>> Drive::unseen_before(std::uint64_t index, const FrameDescription& description) {
  std::array<bool, kMostKeyDistance + 1> needed{};  // by how many frames they are back
  for (const std::uint64_t distance : description.references) needed[distance] = true;
  Vector<std::uint64_t> unseen;
  for (std::uint64_t back = 1; back <= description.key_distance; ++back) {
    const std::uint64_t frame = index - back;
    if (!needed[back] || seen_.contains(frame)) continue;
    unseen.push_back(frame);
    QUERN_ASSIGN_OR_RETURN(const auto other, read_frame_description(frame));
    if (!other.is_predicted()) continue;
    // No chain goes back behind the key frame, so it has an end.
    if (other.key_distance > frame || frame - other.key_distance != key_)
      return Status(StatusCode::corrupt, "frame {0} has another key frame than the frames it predicts",
                    static_cast<std::int64_t>(frame));
    for (const std::uint64_t distance : other.references) needed[back + distance] = true;
  }
  return unseen;
}

Result<Vector<codec::lidar::PredictedPoint>> Drive::predict_by_seen(std::uint64_t index,
                                                                    const FrameDescription& description) {
  ScanPredictor predictor(rays_, *description.pose, description.known);
  std::uint64_t points = 0;
  for (const std::uint64_t distance : description.references) {
    const auto found = seen_.find(index - distance);
    points += found == seen_.end() ? 0 : found->second.points.size();
    // A known point takes as much memory as one that is decoded.
    if (found == seen_.end() || (description.known && points > most_points_))
      return Status(StatusCode::memory_limit,
                    "frame {0} is predicted from more points of other frames than memory allows",
                    static_cast<std::int64_t>(index));
    predictor.add(found->second);
  }
  if (description.reach) {
    if (!epoch_) return Status(StatusCode::corrupt, "a frame's key frame names no epoch of a history");
    const Status added =
        tiles_ == nullptr ? Status(StatusCode::unsupported, "the frame was predicted from a history of earlier drives")
                          : tiles_->add_tiles(*epoch_, *description.reach, *description.pose, predictor);
    misses_history_ = !added.ok();
    QUERN_RETURN_IF_ERROR(added);
  }
  return predictor.seen();
}

Status Drive::read_key(std::uint64_t key) {
  if (key_ == key) return {};
  QUERN_ASSIGN_OR_RETURN(auto stored, read_stored(key));
  if (!stored.description.rays)
    return Status(StatusCode::corrupt, "frame {0} is no key frame, though others are predicted with its rays",
                  static_cast<std::int64_t>(key));
  enter_key(key, *stored.description.rays, stored.description.epoch);
  return {};
}

void Drive::enter_key(std::uint64_t key, const SensorRays& rays, const std::optional<storage::ContentHash>& epoch) {
  if (key_ == key) return;
  seen_.clear();  // frames predict none of another key frame
  rays_ = rays;
  epoch_ = epoch;
  key_ = key;
}

Status Drive::see(std::uint64_t index) {
  QUERN_ASSIGN_OR_RETURN(const auto stored, read_stored(index));
  const FrameDescription& description = stored.description;
  if (!description.pose || !is_f32(description.kind))
    return Status(StatusCode::corrupt, "frame {0} has no pose, though it predicts others",
                  static_cast<std::int64_t>(index));
  Vector<codec::lidar::PredictedPoint> prediction;
  if (description.is_predicted()) {
    QUERN_ASSIGN_OR_RETURN(prediction, predict_by_seen(index, description));
  }
  SerialRunner runner;
  QUERN_ASSIGN_OR_RETURN(const auto cloud, decode_frame(description, stored.scan, most_points_, runner, prediction));
  keep(index, {*description.pose, unit_points(cloud.words)});
  return {};
}

void Drive::keep(std::uint64_t index, SeenFrame frame) {
  seen_.insert_or_assign(index, std::move(frame));
  std::erase_if(seen_,
                [&](const auto& one) { return one.first > index || one.first + kMostReferenceDistance <= index; });
  std::uint64_t points = 0;
  for (const auto& [_, one] : seen_) points += one.points.size();
  for (; points > most_seen_points_; seen_.erase(seen_.begin())) points -= seen_.begin()->second.points.size();
}

Result<FrameDescription> Drive::read_frame_description(std::uint64_t index) {
  QUERN_ASSIGN_OR_RETURN(const auto bytes, reader_->read_string(kDescriptions, index));
  return read_description(bytes);
}

Result<CodedFrame> Drive::read_stored(std::uint64_t index) {
  if (index >= frames()) return no_such_frame(index, frames());
  CodedFrame out;
  QUERN_ASSIGN_OR_RETURN(out.description, read_frame_description(index));
  QUERN_ASSIGN_OR_RETURN(out.scan, reader_->read_string(kScans, index));
  QUERN_ASSIGN_OR_RETURN(const auto info, codec::lidar::scan_info(out.scan));
  QUERN_RETURN_IF_ERROR(check_frame(out.description, info));
  out.points = info.points;
  out.dropped_points = info.dropped_points;
  out.achieved_error = frame_errors(out.description, info).achieved;
  return out;
}

Result<DriveFrame> Drive::describe(std::uint64_t index) {
  QUERN_ASSIGN_OR_RETURN(auto coded, read_stored(index));
  DriveFrame out;
  QUERN_ASSIGN_OR_RETURN(out.scan, codec::lidar::scan_info(coded.scan));
  QUERN_ASSIGN_OR_RETURN(const auto parts, reader_->stored_parts(index));
  for (const StoredPart& part : parts) out.stored_bytes += part.stored_bytes;
  out.description = std::move(coded.description);
  return out;
}

Result<PointCloud> Drive::read(std::uint64_t index, std::uint64_t most_points, TaskRunner& runner) {
  QUERN_ASSIGN_OR_RETURN(const auto coded, read_coded(index));
  QUERN_ASSIGN_OR_RETURN(auto cloud,
                         decode_frame(coded.description, coded.scan, most_points, runner, coded.prediction));
  remember(index, coded.description, cloud);
  return cloud;
}

/// Frames that are read in turn are decoded once.
void Drive::remember(std::uint64_t index, const FrameDescription& description, const PointCloud& cloud) {
  if (description.rays) enter_key(index, *description.rays, description.epoch);
  if (key_ > index || !description.pose || !is_f32(description.kind)) return;
  if (description.is_predicted() && index - std::min(index, description.key_distance) != key_) return;
  keep(index, {*description.pose, unit_points(cloud.words)});
}

Status Drive::check_bytes() { return reader_->verify().status(); }

}  // namespace quern::lidar
