// The committed drive: what it was made from, and how what it decodes to is written down.
#pragma once

#include <cstdint>
#include <vector>

#include "lidar/drive/drive.h"
#include "lidar/history/history_tiles.h"

namespace quern::lidar_test {

struct GoldenFrame {
  lidar::PointCloud cloud;
  lidar::FrameOptions options;
  String name;
  std::optional<std::int64_t> time_stamp;
};

/// One for each way of coordinates and mode. Clouds come from integers and a hash alone.
std::vector<GoldenFrame> golden_frames();

/// Encoded, with the name and time set.
lidar::CodedFrame code(const GoldenFrame& frame);

Vector<std::uint8_t> make_golden_drive();

/// Five scans of one place, and where their sensor stood.
std::vector<lidar::PointCloud> posed_clouds();
std::vector<lidar::Pose> posed_poses();
/// These under 15 cm, with every third a key frame.
Vector<std::uint8_t> make_posed_drive();

/// Range images as images and as points, one predicted from another, and messages of bags.
Vector<std::uint8_t> make_kinds_drive();

/// A history of two epochs, of scans 0 and 1. Returns the root of the second.
Result<lidar::ContentHash> make_golden_history(storage::FileSystem& files, const String& root);
/// Scans 2 to 4 under 15 cm, predicted from an epoch, with every second a key frame.
Vector<std::uint8_t> make_history_drive(lidar::TileSource& tiles, const lidar::ContentHash& epoch);

/// For each frame: name (size u8, bytes), coordinates u8 (0 f32, 1 scaled, 2 f64), points u32, their numbers, then each
/// column's name (size u8, bytes), type u8 and bytes.
Vector<std::uint8_t> decoded_drive(std::span<const std::uint8_t> drive, lidar::TileSource* tiles = nullptr);

}  // namespace quern::lidar_test
