#include "cli/lidar/drive_kinds.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "lidar/bags/message_layout.h"
#include "lidar/files/cloud_files.h"
#include "lidar/images/range_sensor.h"

namespace quern::cli {
namespace {

using lidar::CodedKind;
using lidar::FileFormat;
using lidar::FrameDescription;

std::optional<lidar::RangeSensor> sensor_of(const FrameDescription& frame) {
  if (frame.kind != CodedKind::projected) return std::nullopt;
  auto sensor = lidar::read_range_sensor(frame.file_header);
  return sensor.ok() ? std::optional(std::move(sensor).value()) : std::nullopt;
}

std::string topic_of(const FrameDescription& frame) {
  if (frame.format != FileFormat::point_cloud2) return {};
  const auto layout = lidar::read_layout(frame.file_header);
  return layout.ok() ? std::string(layout->topic.data(), layout->topic.size()) : std::string();
}

const char* kind_name(CodedKind kind) {
  switch (kind) {
    case CodedKind::f32: return "f32";
    case CodedKind::scaled: return "scaled";
    case CodedKind::grid_of_f64: return "f64 on a grid";
    case CodedKind::f64_remainders: return "f64";
    case CodedKind::projected: return "projected";
  }
  return "unknown";
}

const char* kind_text(CodedKind kind) {
  switch (kind) {
    case CodedKind::f32: return "32-bit floating point";
    case CodedKind::scaled: return "whole numbers of a grid";
    case CodedKind::grid_of_f64: return "64-bit floating point, moved to a grid of 0.1 mm";
    case CodedKind::f64_remainders: return "64-bit floating point, every bit";
    case CodedKind::projected: return "computed from ranges and the sensor";
  }
  return "unknown";
}

void add_once(std::string text, std::vector<std::string>& out) {
  if (std::find(out.begin(), out.end(), text) == out.end()) out.push_back(std::move(text));
}

}  // namespace

std::string source_text(const FrameDescription& frame) {
  if (const auto sensor = sensor_of(frame))
    return fmt::format("range images of {} x {} pixels, {}", sensor->beams.size(), sensor->columns,
                       sensor->is_destaggered ? "destaggered" : "staggered");
  switch (frame.format) {
    case FileFormat::range_image: return "points of range images";
    case FileFormat::point_cloud2: {
      const std::string topic = topic_of(frame);
      return topic.empty() ? std::string("PointCloud2 messages") : "PointCloud2 messages of " + topic;
    }
    case FileFormat::unknown: return "files of an unknown format";
    default: return fmt::format(".{} files", lidar::format_name(frame.format));
  }
}

void add_kinds(const FrameDescription& frame, Json& out) {
  out["format"] = lidar::format_name(frame.format);
  out["coordinates"] = kind_name(frame.kind);
  out["rows"] = frame.rows;
  const auto sensor = sensor_of(frame);
  out["image"] =
      sensor
          ? Json{{"rows", sensor->beams.size()}, {"columns", sensor->columns}, {"destaggered", sensor->is_destaggered}}
          : Json(nullptr);
  const std::string topic = topic_of(frame);
  out["topic"] = topic.empty() ? Json(nullptr) : Json(topic);
}

void DriveKinds::add(const FrameDescription& frame) {
  add_once(source_text(frame), sources_);
  add_once(kind_text(frame.kind), coordinates_);
}

std::string DriveKinds::sources_text() const { return fmt::format("{}", fmt::join(sources_, "; ")); }

std::string DriveKinds::coordinates_text() const { return fmt::format("{}", fmt::join(coordinates_, "; ")); }

}  // namespace quern::cli
