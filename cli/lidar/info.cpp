// quern lidar info: what drives hold, from descriptions and headers of scans; nothing is decoded.
#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "cli/args/values.h"
#include "cli/files/file_names.h"
#include "cli/lidar/drive_kinds.h"
#include "cli/lidar/scans.h"
#include "cli/lidar/verb.h"
#include "cli/verbs/verbs.h"
#include "lidar/locate/rigid.h"

namespace quern::cli {
namespace {

struct Summary {
  std::uint64_t frames = 0, points = 0, source_points = 0, dropped = 0, source_bytes = 0, stored = 0;
  std::uint64_t geometry = 0, order = 0, columns = 0, rays = 0, predicted = 0, by_history = 0;
  double bound = 0, achieved = 0;
  std::uint64_t exact = 0;  ///< frames that lost nothing
  std::optional<std::int64_t> first_time, last_time;
  std::string modes, attributes, epochs;
  DriveKinds kinds;
};

void note(std::string& list, const std::string& word) {
  if ((" " + list + " ").find(" " + word + " ") == std::string::npos) list += (list.empty() ? "" : " ") + word;
}

void add(const lidar::DriveFrame& frame, Summary& out) {
  ++out.frames;
  out.points += frame.scan.points;
  out.source_points += frame.scan.source_points;
  out.dropped += frame.scan.dropped_points;
  out.source_bytes += frame.description.source_bytes;
  out.stored += frame.stored_bytes;
  out.geometry += frame.scan.geometry_bytes;
  out.order += frame.scan.order_bytes;
  out.columns += frame.scan.column_bytes;
  out.rays += frame.scan.rays ? 1 : 0;
  out.predicted += frame.scan.predicted ? 1 : 0;
  out.by_history += frame.description.reach ? 1 : 0;
  if (frame.description.epoch) note(out.epochs, plain(storage::hex(*frame.description.epoch)));
  const auto errors = lidar::frame_errors(frame.description, frame.scan);
  out.exact += frame.scan.mode == lidar::Mode::exact ? 1 : 0;
  out.bound = std::max(out.bound, errors.bound);
  out.achieved = std::max(out.achieved, errors.achieved);
  const auto& time = frame.description.time_stamp;
  if (time && !out.first_time) out.first_time = time;
  if (time) out.last_time = time;
  out.kinds.add(frame.description);
  note(out.modes, mode_name(frame.scan.mode));
  for (const auto& column : frame.description.columns)
    note(out.attributes, fmt::format("{}:{}", plain(column.name), dtype_name(column.type)));
}

Json time_json(const std::optional<std::int64_t>& ns) { return ns ? Json(*ns) : Json(nullptr); }

Json frame_json(const lidar::DriveFrame& frame) {
  const auto errors = lidar::frame_errors(frame.description, frame.scan);
  Json columns = Json::array();
  for (const auto& column : frame.description.columns)
    columns.push_back({{"name", plain(column.name)}, {"dtype", dtype_name(column.type)}});
  Json out{{"name", plain(frame.description.name)},
           {"time_ns", time_json(frame.description.time_stamp)},
           {"mode", mode_name(frame.scan.mode)},
           {"bound", errors.bound},
           {"max_error", errors.achieved},
           {"points", frame.scan.points},
           {"source_points", frame.scan.source_points},
           {"dropped_points", frame.scan.dropped_points},
           {"source_bytes", frame.description.source_bytes},
           {"stored_bytes", frame.stored_bytes},
           {"geometry_bytes", frame.scan.geometry_bytes},
           {"order_bytes", frame.scan.order_bytes},
           {"attribute_bytes", frame.scan.column_bytes},
           {"tool", frame.scan.rays ? "rays" : "octree"},
           {"predicted", frame.scan.predicted},
           {"history_reach", frame.description.reach ? Json(*frame.description.reach) : Json(nullptr)},
           {"epoch", frame.description.epoch ? Json(plain(storage::hex(*frame.description.epoch))) : Json(nullptr)},
           {"columns", columns}};
  add_kinds(frame.description, out);
  out["pose"] = frame.description.pose ? Json(lidar::matrix_of(*frame.description.pose)) : Json(nullptr);
  return out;
}

double ratio(std::uint64_t from, std::uint64_t to) {
  return static_cast<double>(from) / static_cast<double>(std::max<std::uint64_t>(to, 1));
}

std::string text_of(const std::string& path, const Summary& all, std::uint64_t bytes) {
  std::string out = fmt::format("{}\n  frames      {}, {} points of {}{}\n", path, all.frames, all.points,
                                all.source_points, all.dropped == 0 ? "" : fmt::format(", {} dropped", all.dropped));
  out += fmt::format("  size        {} of {}, ratio {:.1f}, {:.2f} bits a point\n", size_text(bytes),
                     size_text(all.source_bytes), ratio(all.source_bytes, bytes), ratio(8 * bytes, all.source_points));
  out += fmt::format("  parts       coordinates {}, order {}, attributes {}\n", size_text(all.geometry),
                     size_text(all.order), size_text(all.columns));
  out += fmt::format("  source      {}\n  coordinates {}\n", all.kinds.sources_text(), all.kinds.coordinates_text());
  out += fmt::format("  mode        {}\n", all.modes);
  if (all.exact < all.frames)
    out += fmt::format("  error       at most {} in either direction; {} were allowed\n", length_text(all.achieved),
                       length_text(all.bound));
  else
    out += "  error       none: every bit comes back\n";
  out += fmt::format("  tools       octree for {} frames, rays for {}\n", all.frames - all.rays, all.rays);
  if (all.predicted != 0)
    out += fmt::format("  predicted   {} frames, {} of them with a history\n", all.predicted, all.by_history);
  if (!all.epochs.empty()) out += fmt::format("  history     epoch {}\n", all.epochs);
  if (!all.attributes.empty()) out += fmt::format("  attributes  {}\n", all.attributes);
  if (all.first_time)
    out += fmt::format("  time        {:.3f} s from the first frame to the last\n",
                       static_cast<double>(*all.last_time - *all.first_time) / 1e9);
  return out;
}

std::string line_of(std::uint64_t index, const lidar::DriveFrame& frame) {
  return fmt::format("  {:>6}  {:24}  {:>8} points  {:>9} bytes  {:6}  {}\n", index, plain(frame.description.name),
                     frame.scan.points, frame.stored_bytes, mode_name(frame.scan.mode),
                     length_text(lidar::frame_errors(frame.description, frame.scan).achieved));
}

void tell_drive(const std::string& path, const LidarArgs& args) {
  DriveFile source(path, args.run);
  Summary all;
  Json each = Json::array();
  std::string lines;
  for (std::uint64_t i = 0; i < source.drive().frames(); ++i) {
    const auto frame = source.drive().describe(i);
    if (!frame.ok()) fail_frame(path, i, frame.status());
    add(*frame, all);
    if (args.run.json) each.push_back(frame_json(*frame));
    if (args.run.verbose) lines += line_of(i, *frame);
  }
  if (!args.run.json) {
    print_text(text_of(path, all, source.bytes()) + lines);
    return;
  }
  print_json(Json{{"input", path},
                  {"input_bytes", source.bytes()},
                  {"frames", all.frames},
                  {"points", all.points},
                  {"source_points", all.source_points},
                  {"dropped_points", all.dropped},
                  {"source_bytes", all.source_bytes},
                  {"ratio", ratio(all.source_bytes, source.bytes())},
                  {"bits_per_point", ratio(8 * source.bytes(), all.source_points)},
                  {"geometry_bytes", all.geometry},
                  {"order_bytes", all.order},
                  {"attribute_bytes", all.columns},
                  {"sources", all.kinds.sources()},
                  {"coordinates", all.kinds.coordinates()},
                  {"bound", all.bound},
                  {"max_error", all.achieved},
                  {"each", each},
                  {"version", QUERN_VERSION}});
}

/// A file that is a bag, or a folder of rosbag2.
bool is_bag(const std::string& path) { return is_directory(path) || is_bag_file(path); }

void tell(const std::string& path, const LidarArgs& args) {
  if (is_bag(path)) return tell_bag(path, args);
  if (!args.sensor.empty() && !is_drive_file(path)) return tell_images(path, args);
  if (args.sensor.empty() && path.ends_with(".u32") && is_there(path) && !is_drive_file(path))
    fail(Exit::usage, path + ": of range images say --sensor FILE, the metadata (JSON) of the sensor that made them");
  tell_drive(path, args);
}

}  // namespace

Exit run_lidar_info(const LidarArgs& args) {
  Exit result = Exit::ok;
  for (const std::string& path : args.inputs) attempt(result, [&] { tell(path, args); });
  return result;
}

}  // namespace quern::cli
