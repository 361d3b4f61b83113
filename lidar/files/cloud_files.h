// Point clouds in files of other programs: which format a file has, its bytes to a cloud, a cloud to its bytes.
//
//   format  coordinates          attributes
//   bin     binary32             binary32 (KITTI: intensity; nuScenes: intensity, ring); the file has no header
//   pcd     binary32, binary64   any of 1, 2, 4, 8 bytes; ASCII, binary, LZF
//   ply     binary32, binary64   any but 64-bit integers; ASCII, little- and big-endian
//   npy     binary32, binary64   of one type with the coordinates: an array (points, columns)
//   las     scaled               those of point formats 0 to 10, and extra bytes
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <quern/status.h>

#include "lidar/cloud/point_cloud.h"

namespace quern::lidar {

/// By the end of the name: .bin .pcd .ply .npy .las; `unknown` for others, also for .laz.
FileFormat format_of_name(std::string_view path);
/// By the first bytes; `unknown` for bin, which has no mark.
FileFormat format_of_bytes(std::span<const std::uint8_t> bytes);
/// "bin", "pcd", ...
const char* format_name(FileFormat format);
std::optional<FileFormat> parse_format(std::string_view name);

struct ReadOptions {
  /// Numbers of a point in .bin files, 4 or 5; 0: by the file's name (nuScenes: .pcd.bin), then by its size and values.
  unsigned bin_columns = 0;
  /// Bytes that a cloud, and beside it what its file is unpacked into, may take.
  std::uint64_t most_bytes = UINT64_MAX;
};

/// The format by content, then by name; LAZ and what is no point cloud fail with a sentence that says what to do.
Result<FileFormat> recognize(std::string_view path, std::span<const std::uint8_t> bytes);

/// Any bytes are safe. Fails with `corrupt` or `truncated` on damaged files, with `unsupported` on what this reader does
/// not take, with `invalid_argument` where the number of columns of a .bin file cannot be told, and with `memory_limit`,
/// before it takes the memory, where the points need more than `most_bytes`. Memory: at most about 100 bytes for each byte of a compressed PCD file, 10 of others. `path` is read for its end alone.
Result<PointCloud> read_cloud(std::string_view path, std::span<const std::uint8_t> bytes, const ReadOptions& options);

/// What a file holds and what of a cloud it cannot hold.
struct CloudFile {
  Vector<std::uint8_t> bytes;
  Vector<String> left_out;  ///< names of columns that the format has no place for
};

/// Coordinates come out as they are: fails with `unsupported` where the format would have to move them (LAS of
/// coordinates that are no whole steps of 0.1 mm, bin of binary64 that binary32 does not hold).
Result<CloudFile> write_cloud(const PointCloud& cloud, FileFormat format);

}  // namespace quern::lidar
