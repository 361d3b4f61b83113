// Inputs of quern lidar: files and folders of scans.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "cli/files/file_names.h"
#include "cli/lidar/verb.h"
#include "lidar/files/cloud_files.h"

namespace quern::cli {
namespace {

std::vector<std::string> scans_of(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string path = entry->path().string();
    std::error_code ignored;
    if (lidar::format_of_name(path) != lidar::FileFormat::unknown && entry->is_regular_file(ignored))
      out.push_back(path);
  }
  if (error) fail(Exit::io, fmt::format("{}: cannot list the folder: {}", folder, error.message()));
  if (out.empty()) fail(Exit::io, folder + ": the folder has no .bin .pcd .ply .npy or .las files");
  std::sort(out.begin(), out.end());
  return out;
}

/// Damaged files of other programs are inputs that cannot be read, not bad streams.
Exit exit_for_input(const Status& status) {
  if (status.code() == StatusCode::invalid_argument) return Exit::usage;
  const Exit code = exit_for(status, Phase::decode);
  return code == Exit::stream ? Exit::io : code;
}

}  // namespace

std::vector<std::string> cloud_paths(const std::vector<std::string>& inputs) {
  std::vector<std::string> out;
  for (const std::string& input : inputs) {
    if (input == "-") fail(Exit::usage, "-: scans are read from files, whose names tell their formats");
    if (!is_directory(input)) {
      out.push_back(input);
      continue;
    }
    const auto more = scans_of(input);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

lidar::PointCloud read_cloud_file(const std::string& path, unsigned bin_columns) {
  const Mapping mapping = Mapping::of_file(path);
  auto cloud = lidar::read_cloud(path, mapping.bytes(), {bin_columns});
  if (!cloud.ok()) fail(exit_for_input(cloud.status()), path + ": " + cloud.status().text());
  return std::move(cloud).value();
}

std::string frame_name(const std::string& path) {
  std::string name = base_name(path);
  const std::size_t dot = name.rfind('.');
  if (dot != std::string::npos && dot > 0 && lidar::format_of_name(name) != lidar::FileFormat::unknown)
    name.resize(dot);
  return plain(lidar::frame_name_of(name));
}

}  // namespace quern::cli
