// Files of folders that are read and written at no more than so many bytes a second: stands in for disks that are slower
// than this machine's.
#pragma once

#include <functional>

#include "storage/forwarding_files.h"
#include "storage/token_bucket.h"

namespace quern::storage {

class ThrottledFiles final : public ForwardingFiles {
 public:
  /// `files` must outlive this. `stopped`: asked by any thread before each piece and while one waits; once it says so,
  /// reads and writes below the folders fail as cancelled.
  ThrottledFiles(FileSystem& files, std::function<bool()> stopped)
      : ForwardingFiles(files), stopped_(std::move(stopped)) {}
  /// Files below `folder` have a rate in each direction, both at the same time; 0: no limit. Before any of them is opened.
  void add(std::string_view folder, double bytes_per_second);

  Result<std::unique_ptr<File>> open(std::string_view path) override;
  Result<std::unique_ptr<File>> create(std::string_view path) override;

 private:
  static constexpr auto kHolds = std::chrono::milliseconds(20);
  struct Disk : public Allocated {
    String folder;  ///< with a slash at its end
    /// Little more than what a thread may oversleep: a disk that was idle is no faster after it.
    TokenBucket read{0, kHolds}, write{0, kHolds};
  };
  Result<std::unique_ptr<File>> wrap(std::string_view path, Result<std::unique_ptr<File>> file);

  const std::function<bool()> stopped_;
  Vector<std::unique_ptr<Disk>> disks_;
  class ThrottledFile;
};

}  // namespace quern::storage
