// sensor_msgs/msg/PointCloud2 messages as clouds, and clouds as messages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <quern/status.h>

#include "lidar/cloud/point_cloud.h"

namespace quern::lidar {

struct MessageCloud {
  PointCloud cloud;  ///< its file_header is the layout of the message
  std::int64_t stamp = 0;
};

/// A message of a topic. Any bytes are safe. Fails with `truncated` where it is shorter than it says, `corrupt` where
/// its fields do not fit into its points, `unsupported` for points without x, y and z or with more fields than a frame
/// takes. Allocates in proportion to `bytes`. O(bytes).
Result<MessageCloud> read_point_cloud2(std::span<const std::uint8_t> bytes, std::string_view topic,
                                       std::int64_t log_time);

/// The cloud without its columns; of one of a message the topic stays.
void drop_attributes(PointCloud& cloud);

struct WrittenMessage {
  Vector<std::uint8_t> bytes;  ///< little-endian CDR
  String topic;
  std::int64_t log_time = 0;
  Vector<String> left_out;  ///< names of columns of 64-bit integers, which messages have no type for
};

/// The message of a cloud and its time. A cloud of a message has fields where it had them, and its topic; another has
/// `topic`, and its fields one behind the other. Fails with `unsupported` for stamps that no message holds and points
/// of 4 GiB or more, with `corrupt` where the cloud's layout is damaged, with `memory_limit` where the message's points
/// need more than `most_bytes`.
Result<WrittenMessage> write_point_cloud2(const PointCloud& cloud, std::int64_t stamp, std::string_view topic,
                                          std::uint64_t most_bytes = UINT64_MAX);

}  // namespace quern::lidar
