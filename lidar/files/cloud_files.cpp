// Which reader and which writer.
#include "lidar/files/cloud_files.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lidar/files/formats.h"

namespace quern::lidar {
namespace {

constexpr std::array<std::pair<FileFormat, const char*>, 5> kNames = {{{FileFormat::bin, "bin"},
                                                                       {FileFormat::pcd, "pcd"},
                                                                       {FileFormat::ply, "ply"},
                                                                       {FileFormat::npy, "npy"},
                                                                       {FileFormat::las, "las"}}};

/// The ending in lower case, as "las".
String ending_of(std::string_view path) {
  const std::size_t dot = path.find_last_of("./");
  if (dot == std::string_view::npos || path[dot] == '/') return {};
  String out(path.substr(dot + 1));
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

}  // namespace

FileFormat format_of_name(std::string_view path) { return parse_format(ending_of(path)).value_or(FileFormat::unknown); }

FileFormat format_of_bytes(std::span<const std::uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 64));
  if (text.starts_with("LASF")) return FileFormat::las;
  if (text.starts_with("# .PCD") || text.starts_with("VERSION .") || text.starts_with("VERSION 0."))
    return FileFormat::pcd;
  if (text.starts_with("ply\n") || text.starts_with("ply\r\n")) return FileFormat::ply;
  if (text.starts_with("\x93NUMPY")) return FileFormat::npy;
  return FileFormat::unknown;
}

const char* format_name(FileFormat format) {
  if (format == FileFormat::point_cloud2) return "PointCloud2";
  if (format == FileFormat::range_image) return "range image";
  for (const auto& [known, name] : kNames)
    if (known == format) return name;
  return "unknown";
}

std::optional<FileFormat> parse_format(std::string_view name) {
  for (const auto& [format, known] : kNames)
    if (name == known) return format;
  return std::nullopt;
}

Result<FileFormat> recognize(std::string_view path, std::span<const std::uint8_t> bytes) {
  const FileFormat by_name = format_of_name(path);
  const FileFormat by_bytes = format_of_bytes(bytes);
  // LAZ files begin as LAS files; their reader says what to do. A .bin file may begin with anything.
  if (by_bytes != FileFormat::unknown && by_name != FileFormat::bin) return by_bytes;
  if (by_name != FileFormat::unknown) return by_name;
  if (ending_of(path) == "laz")
    return Status(StatusCode::unsupported,
                  "LAZ is not read; make a LAS file of it with laszip -i in.laz -o out.las, or "
                  "pdal translate in.laz out.las");
  return Status(StatusCode::unsupported,
                "this is no point cloud that is read here: .bin .pcd .ply .npy .las .mcap .db3");
}

Result<PointCloud> read_cloud(std::string_view path, std::span<const std::uint8_t> bytes, const ReadOptions& options) {
  QUERN_ASSIGN_OR_RETURN(const FileFormat format, recognize(path, bytes));
  const auto read = [&]() -> Result<PointCloud> {
    switch (format) {
      case FileFormat::bin: return read_bin(path, bytes, options);
      case FileFormat::pcd: return read_pcd(bytes, options.most_bytes);
      case FileFormat::ply: return read_ply(bytes, options.most_bytes);
      case FileFormat::npy: return read_npy(bytes, options.most_bytes);
      case FileFormat::las: return read_las(bytes, options.most_bytes);
      case FileFormat::point_cloud2:
      case FileFormat::range_image:
      case FileFormat::unknown: break;
    }
    return Status(StatusCode::internal, "no reader");
  };
  QUERN_ASSIGN_OR_RETURN(PointCloud out, read());
  out.format = format;
  out.source_bytes = bytes.size();
  return out;
}

Result<CloudFile> write_cloud(const PointCloud& cloud, FileFormat format) {
  switch (format) {
    case FileFormat::bin: return write_bin(cloud);
    case FileFormat::pcd: return write_pcd(cloud);
    case FileFormat::ply: return write_ply(cloud);
    case FileFormat::npy: return write_npy(cloud);
    case FileFormat::las: return write_las(cloud);
    case FileFormat::point_cloud2:
    case FileFormat::range_image:
    case FileFormat::unknown: break;
  }
  return Status(StatusCode::unsupported, "name a format: bin, pcd, ply, npy or las");
}

}  // namespace quern::lidar
