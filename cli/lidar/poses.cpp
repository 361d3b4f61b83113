// Poses of frames: 12 numbers a line, the rows of a 3 x 4 matrix, as KITTI writes them.
#include <array>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "cli/lidar/verb.h"

namespace quern::cli {
namespace {

/// 12 numbers between spaces or commas, and nothing else.
std::optional<std::array<double, 12>> read_row(std::string_view line) {
  std::array<double, 12> row{};
  const char* at = line.data();
  const char* const end = at + line.size();
  const auto skip = [&] {
    while (at != end && (*at == ' ' || *at == '\t' || *at == ',')) ++at;
  };
  for (double& number : row) {
    skip();
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return std::nullopt;
    at = next;
  }
  skip();
  return at == end ? std::optional(row) : std::nullopt;
}

}  // namespace

std::vector<lidar::Pose> read_poses(const std::string& path, std::size_t frames) {
  std::vector<lidar::Pose> out;
  for_each_line(path, [&](std::size_t number, std::string_view line) {
    const auto row = read_row(line);
    if (!row) fail(Exit::usage, fmt::format("{}: line {} is not 12 numbers, the rows of a 3x4 matrix", path, number));
    const auto pose = lidar::pose_of_matrix(*row);
    if (!pose)
      fail(Exit::usage,
           fmt::format("{}: line {} is no pose: its rotation is not rigid, or it lies too far away", path, number));
    out.push_back(*pose);
  });
  check_one_a_frame(path, "poses", out.size(), frames);
  return out;
}

}  // namespace quern::cli
