// What a PointCloud2 message has beside its points, as a drive keeps it with the frame: topic, frame of coordinates,
// and where in a point its fields lie. Stored form: docs/format-lidar.md, 7, "Messages".
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::lidar {

/// Of a point, at most.
inline constexpr std::uint64_t kMostPointStep = UINT64_C(1) << 16;
inline constexpr std::size_t kMaxTopicBytes = 1024;
inline constexpr std::uint64_t kMostMessageFields = 67;

/// Where a field lies in a point.
struct FieldPlace {
  std::uint64_t element = 0;  ///< 0, 1, 2: x, y, z; 3 + k: column k, and those behind it where count is above 1
  std::uint64_t offset = 0;
  std::uint64_t count = 1;
};

struct MessageLayout {
  String topic;
  String frame_id;
  std::int64_t log_delay = 0;  ///< log time less the stamp, nanoseconds
  bool is_dense = true;
  std::uint64_t point_step = 0;
  Vector<FieldPlace> places;  ///< none: x, y, z and the columns, one behind the other
};

Vector<std::uint8_t> write_layout(const MessageLayout& layout);
/// Any bytes are safe. Fails with `corrupt`; what fields a frame has is not checked.
Result<MessageLayout> read_layout(std::span<const std::uint8_t> bytes);

}  // namespace quern::lidar
