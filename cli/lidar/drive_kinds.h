// What the frames of a drive came from and how their coordinates are coded, in words and as JSON.
#pragma once

#include <string>
#include <vector>

#include "cli/messages/file_report.h"
#include "lidar/drive/frame_description.h"

namespace quern::cli {

/// "range images of 128 x 1024 pixels, staggered", "PointCloud2 messages of /points", ".las files".
std::string source_text(const lidar::FrameDescription& frame);

/// Members of a frame's JSON: format, coordinates, rows, image, topic.
void add_kinds(const lidar::FrameDescription& frame, Json& out);

/// Each source and kind of coordinates of a drive once, in the order of its frames.
class DriveKinds {
 public:
  void add(const lidar::FrameDescription& frame);
  const std::vector<std::string>& sources() const { return sources_; }
  const std::vector<std::string>& coordinates() const { return coordinates_; }
  std::string sources_text() const;
  std::string coordinates_text() const;

 private:
  std::vector<std::string> sources_;
  std::vector<std::string> coordinates_;
};

}  // namespace quern::cli
