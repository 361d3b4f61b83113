// The scans of inputs: files, those of folders, and messages of bags.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cli/lidar/args.h"
#include "cli/lidar/range_files.h"
#include "lidar/bags/bag.h"
#include "lidar/cloud/point_cloud.h"

namespace quern::cli {

/// Whether a file is a bag: by its name, and where that says nothing by its first bytes.
bool is_bag_file(const std::string& path);

/// A bag, which is opened to list its topics and again for messages after close(). Throws CliError, naming the file.
class BagFile {
 public:
  BagFile(const std::string& path, const RunArgs& run);
  const std::string& path() const { return path_; }
  const Vector<lidar::BagTopic>& topics() const { return topics_; }
  bool is_cut() const { return is_cut_; }
  /// The open bag, in which its messages lie. One thread at a time.
  std::shared_ptr<lidar::Bag> open();
  /// Gives its memory back when those who have it from open() are done.
  void close() { bag_.reset(); }

 private:
  std::string path_;
  RunArgs run_;
  std::shared_ptr<lidar::Bag> bag_;
  Vector<lidar::BagTopic> topics_;
  bool is_cut_ = false;
};

/// Names of files and of those in folders, sorted by name; of a folder with a metadata.yaml those that it lists. Throws
/// CliError where a folder has none.
std::vector<std::string> scan_files(const std::vector<std::string>& inputs);

struct Scan {
  lidar::PointCloud cloud;           ///< of a range image: every pixel (lidar/images/range_cloud.h)
  std::optional<std::int64_t> time;  ///< of a message: its stamp
  std::uint64_t dropped_zeros = 0;   ///< points at the origin that were left out as asked
};

/// Scans in order of the inputs, those of a bag in order of time.
class Scans {
 public:
  /// Throws CliError: usage where an option is missing, io where a bag cannot be read.
  Scans(const std::vector<std::string>& inputs, const LidarArgs& args);

  std::size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }
  /// How many of them the work reads and holds side by side, at least 1: each may take as large a share of --memory.
  std::size_t side_by_side() const;
  /// All files, each once.
  const std::vector<std::string>& files() const { return files_; }
  /// The file, and of a bag topic and number of the message, of images their number, for people.
  std::string label(std::size_t i) const;
  /// A file's name without folder and ending, or the number of a message or image.
  std::string frame_name(std::size_t i) const;
  /// Throws CliError with the label: usage where an option is missing, io where it cannot be read, resource
  /// where the points of a file do not fit into their share of --memory. Several threads may call it.
  Scan read(std::size_t i) const;
  /// Says which topics of bags are not among the scans.
  void tell_left_out() const;

 private:
  struct Place {
    std::size_t file = 0;
    std::uint64_t number = 0;  ///< of the message or image
  };
  /// A bag, range images, or else a scan.
  struct Source {
    std::unique_ptr<BagFile> bag;
    std::optional<std::size_t> topic;
    std::unique_ptr<RangeFiles> images;

    std::uint64_t scans() const;
  };

  Scan read_all(std::size_t i) const;
  void choose_topics();
  /// The open bag of a source. Of several bags only the last one is kept open: each may take a good part of --memory.
  std::shared_ptr<lidar::Bag> open_bag(const Source& source) const;

  const LidarArgs& args_;
  std::vector<std::string> files_;
  std::vector<Source> sources_;  ///< by file
  std::vector<Place> places_;
  mutable std::mutex mutex_;         ///< of what follows and of bags that are opened and closed
  mutable BagFile* open_ = nullptr;  ///< among the sources
};

}  // namespace quern::cli
