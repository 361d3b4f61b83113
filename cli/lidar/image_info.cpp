// quern lidar info of range images that are not compressed yet: sizes, returns and ranges, and the images beside them.
#include <algorithm>

#include <fmt/format.h>

#include "cli/lidar/range_files.h"
#include "cli/lidar/verb.h"
#include "lidar/cloud/little_endian.h"

namespace quern::cli {
namespace {

struct Returns {
  std::uint64_t pixels = 0, returns = 0;
  std::uint32_t nearest = UINT32_MAX, farthest = 0;  ///< millimetres

  void add(std::span<const std::uint8_t> image) {
    for (std::size_t at = 0; at < image.size(); at += 4) {
      const auto range = lidar::load_le<std::uint32_t>(image.data() + at);
      ++pixels;
      if (range == 0) continue;
      ++returns;
      nearest = std::min(nearest, range);
      farthest = std::max(farthest, range);
    }
  }
  double share() const {
    return static_cast<double>(returns) / static_cast<double>(std::max<std::uint64_t>(pixels, 1));
  }
};

double metres(std::uint32_t millimetres) { return millimetres / 1000.0; }

}  // namespace

void tell_images(const std::string& path, const LidarArgs& args) {
  const RangeFiles files(path, args);
  Returns all;
  for (std::uint64_t i = 0; i < files.size(); ++i) all.add(files.ranges(i));
  const lidar::RangeSensor& sensor = files.sensor();
  if (args.run.json) {
    Json channels = Json::array();
    for (const auto& [name, file] : files.channels())
      channels.push_back({{"name", name}, {"file", file.path()}, {"dtype", dtype_name(file.type())}});
    print_json(Json{{"input", path},
                    {"sensor", args.sensor},
                    {"images", files.size()},
                    {"rows", sensor.beams.size()},
                    {"columns", sensor.columns},
                    {"destaggered", sensor.is_destaggered},
                    {"pixels", all.pixels},
                    {"returns", all.returns},
                    {"nearest", all.returns == 0 ? Json(nullptr) : Json(metres(all.nearest))},
                    {"farthest", all.returns == 0 ? Json(nullptr) : Json(metres(all.farthest))},
                    {"channels", channels},
                    {"version", QUERN_VERSION}});
    return;
  }
  std::string out =
      fmt::format("{}\n  images      {} of {} x {} pixels, {}\n  returns     {} ({:.1f} % of the pixels)\n", path,
                  files.size(), sensor.beams.size(), sensor.columns,
                  sensor.is_destaggered ? "destaggered" : "staggered", all.returns, 100 * all.share());
  if (all.returns != 0)
    out += fmt::format("  ranges      {:.3f} m to {:.3f} m\n", metres(all.nearest), metres(all.farthest));
  for (const auto& [name, file] : files.channels())
    out += fmt::format("  channel     {}:{} in {}\n", name, dtype_name(file.type()), file.path());
  print_text(out);
}

}  // namespace quern::cli
