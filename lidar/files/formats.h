// The readers and writers behind cloud_files.h, one file each. Readers take any bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <quern/status.h>

#include "lidar/files/cloud_files.h"

namespace quern::lidar {

Result<PointCloud> read_bin(std::string_view path, std::span<const std::uint8_t> bytes, unsigned columns);
Result<PointCloud> read_pcd(std::span<const std::uint8_t> bytes);
Result<PointCloud> read_ply(std::span<const std::uint8_t> bytes);
Result<PointCloud> read_npy(std::span<const std::uint8_t> bytes);
Result<PointCloud> read_las(std::span<const std::uint8_t> bytes);

Result<CloudFile> write_bin(const PointCloud& cloud);
Result<CloudFile> write_pcd(const PointCloud& cloud);
Result<CloudFile> write_ply(const PointCloud& cloud);
Result<CloudFile> write_npy(const PointCloud& cloud);
Result<CloudFile> write_las(const PointCloud& cloud);

/// Expands LZF data (liblzf's format) into `out`, which it must fill exactly. Fails with `corrupt`.
Status expand_lzf(std::span<const std::uint8_t> in, std::span<std::uint8_t> out);

}  // namespace quern::lidar
