// All frames of a drive in one file: a bag, or arrays of range images.
#pragma once

#include <memory>

#include "cli/lidar/verb.h"

namespace quern::cli {

/// A decoded frame.
struct DecodedFrame {
  std::uint64_t index = 0;
  const lidar::FrameDescription* description = nullptr;
  lidar::PointCloud cloud;
};

/// Files that appear when all frames are in them. Members throw CliError.
class AllFrames {
 public:
  virtual ~AllFrames() = default;
  /// In order. Names of columns that have no place are added to `left_out`.
  virtual void add(DecodedFrame frame, Vector<String>& left_out) = 0;
  /// Makes the files appear; returns their bytes.
  virtual std::uint64_t finish() = 0;
  /// A sentence for the user, or none.
  virtual std::string note() const { return {}; }
};

/// By name and format of the output; null where each frame is a file of its own.
std::unique_ptr<AllFrames> open_all_frames(const LidarArgs& args, const std::string& drive);

/// What a format cannot hold is a wrong wish, not a bad stream.
[[noreturn]] void fail_writing(const std::string& drive, std::uint64_t index,
                               const lidar::FrameDescription& description, const Status& status);

}  // namespace quern::cli
