// quern lidar info of bags: topics, and what the first scan of each has.
#include <fmt/format.h>

#include "cli/lidar/scans.h"
#include "cli/lidar/verb.h"
#include "lidar/bags/point_cloud2.h"

namespace quern::cli {
namespace {

struct FirstScan {
  std::uint64_t points = 0;
  std::string fields;
  Json columns = Json::array();
};

std::optional<FirstScan> first_scan(BagFile& file, std::size_t number) {
  const lidar::BagTopic& topic = file.topics()[number];
  if (!topic.has_clouds() || topic.encoding != "cdr" || topic.messages == 0) return std::nullopt;
  const auto bag = file.open();
  const auto message = bag->read(number, 0);
  const auto read = message.ok() ? lidar::read_point_cloud2(message->bytes, topic.name, message->log_time)
                                 : Result<lidar::MessageCloud>(message.status());
  if (!read.ok())
    fail(Exit::io, fmt::format("{}: topic {}: message 0: {}", file.path(), plain(topic.name), read.status().text()));
  FirstScan out;
  out.points = read->cloud.points();
  const auto add = [&](const std::string& name, DType type) {
    out.fields += fmt::format("{}{}:{}", out.fields.empty() ? "" : " ", name, dtype_name(type));
    out.columns.push_back({{"name", name}, {"dtype", dtype_name(type)}});
  };
  for (const char* const axis : {"x", "y", "z"})
    add(axis, read->cloud.kind == lidar::CoordinateKind::f32 ? DType::f32 : DType::f64);
  for (const auto& column : read->cloud.columns) add(plain(column.name), column.type);
  return out;
}

void tell_file(const std::string& path, const LidarArgs& args) {
  BagFile file(path, args.run);
  Json topics = Json::array();
  std::string text = path + "\n";
  for (std::size_t i = 0; i < file.topics().size(); ++i) {
    const lidar::BagTopic& topic = file.topics()[i];
    const auto first = first_scan(file, i);
    topics.push_back(Json{{"name", plain(topic.name)},
                          {"type", plain(topic.type)},
                          {"encoding", plain(topic.encoding)},
                          {"messages", topic.messages},
                          {"scans", topic.has_clouds()},
                          {"first_points", first ? Json(first->points) : Json(nullptr)},
                          {"first_fields", first ? first->columns : Json(nullptr)}});
    text += fmt::format("  {:32}  {:>8} messages  {}\n", plain(topic.name), topic.messages, plain(topic.type));
    if (first) text += fmt::format("    the first: {} points, {}\n", first->points, first->fields);
  }
  if (args.run.json) {
    print_json(Json{{"input", path}, {"whole", !file.is_cut()}, {"topics", topics}, {"version", QUERN_VERSION}});
  } else {
    print_text(text);
  }
}

}  // namespace

void tell_bag(const std::string& path, const LidarArgs& args) {
  for (const std::string& name : scan_files({path})) {
    if (!is_bag_file(name)) fail(Exit::usage, name + ": this is no bag and no drive");
    tell_file(name, args);
  }
}

}  // namespace quern::cli
