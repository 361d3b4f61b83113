// The readers and writers behind cloud_files.h, one file each. Readers take any bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <quern/status.h>

#include "lidar/files/cloud_files.h"

namespace quern::lidar {

Result<PointCloud> read_bin(std::string_view path, std::span<const std::uint8_t> bytes, const ReadOptions& options);
Result<PointCloud> read_pcd(std::span<const std::uint8_t> bytes, std::uint64_t most_bytes);
Result<PointCloud> read_ply(std::span<const std::uint8_t> bytes, std::uint64_t most_bytes);
Result<PointCloud> read_npy(std::span<const std::uint8_t> bytes, std::uint64_t most_bytes);
Result<PointCloud> read_las(std::span<const std::uint8_t> bytes, std::uint64_t most_bytes);

/// Fails with `memory_limit` where points of so many bytes each do not fit into `most_bytes`.
inline Status check_fits(std::uint64_t points, std::uint64_t point_bytes, std::uint64_t most_bytes) {
  if (points == 0 || point_bytes <= most_bytes / points) return {};
  return Status(StatusCode::memory_limit, "{0} points of {1} bytes each are more than memory allows",
                static_cast<std::int64_t>(points), static_cast<std::int64_t>(point_bytes));
}

Result<CloudFile> write_bin(const PointCloud& cloud);
Result<CloudFile> write_pcd(const PointCloud& cloud);
Result<CloudFile> write_ply(const PointCloud& cloud);
Result<CloudFile> write_npy(const PointCloud& cloud);
Result<CloudFile> write_las(const PointCloud& cloud);

/// Expands LZF data (liblzf's format) into `out`, which it must fill exactly. Fails with `corrupt`.
Status expand_lzf(std::span<const std::uint8_t> in, std::span<std::uint8_t> out);

}  // namespace quern::lidar
