// Files for a save that is only measured: what is there can be read, what would be written goes nowhere.
#pragma once

#include "checkpoint/storage.h"
#include "storage/forwarding_files.h"

namespace quern::checkpoint {

/// Reads go to `files`; nothing else does. Written bytes are forgotten, or with `keep` held in memory until the object
/// dies, so that they can be read again (parity is made of them). A folder that is missing is empty. Others' unfinished
/// saves look busy.
class MeasuringFiles final : public storage::ForwardingFiles {
 public:
  MeasuringFiles(FileSystem& files, bool keep) : ForwardingFiles(files), keep_(keep) {}

  Result<std::unique_ptr<File>> open(std::string_view path) override;
  Result<std::unique_ptr<File>> create(std::string_view path) override;
  Status rename(std::string_view, std::string_view) override { return {}; }
  Status remove(std::string_view) override { return {}; }
  Status make_folder(std::string_view) override { return {}; }
  Status remove_folder(std::string_view) override { return {}; }
  Result<Vector<String>> list(std::string_view path) override;
  Status sync_folder(std::string_view) override { return {}; }
  Result<std::unique_ptr<FileLock>> lock(std::string_view path, LockKind kind, bool wait) override;

  /// Bytes of a file, or how many there were.
  struct Content : public Allocated {
    String path;
    Vector<std::uint8_t> bytes;
    std::uint64_t size = 0;
  };

 private:
  bool keep_;
  Vector<std::unique_ptr<Content>> written_;
};

}  // namespace quern::checkpoint
