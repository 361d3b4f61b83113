// A file that is written under a temporary name beside its final one and renamed when it is complete.
#pragma once

#include <string>

#include <quern/status.h>

namespace quern::flow {

/// Owns the temporary file: unless commit() succeeds, the destructor removes it.
class PendingFile {
 public:
  explicit PendingFile(std::string path) : path_(std::move(path)), temporary_(path_ + ".partial") {}
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile();

  const std::string& path() const { return path_; }
  const std::string& temporary() const { return temporary_; }
  /// Syncs the temporary file, which must be closed, and gives it its final name. `detail` says what failed.
  Status commit(std::string& detail);

 private:
  std::string path_;
  std::string temporary_;
  bool committed_ = false;
};

/// "cannot <verb> <path>: <text of errno>" for an io_error.
std::string io_detail(const char* verb, const std::string& path, int error);

}  // namespace quern::flow
