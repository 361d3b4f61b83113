// Files of a store whose writes can be called off: what ends a save in the middle of a large tensor.
#pragma once

#include <atomic>

#include "checkpoint/storage.h"
#include "storage/token_bucket.h"

namespace quern::checkpoint {

/// Passes everything on. While stopped, writes to files that were made through it fail with `cancelled`; removing,
/// renaming and syncing folders go on, so that a save that ends cleans up behind itself.
class StoppableFiles final : public FileSystem {
 public:
  /// `most`: bytes a second that may be written, over times longer than a tenth of a second; 0: as fast as it goes.
  explicit StoppableFiles(FileSystem& files, double most = 0) : files_(files), bucket_(most) {}
  void stop(bool stopped) { stopped_.store(stopped); }
  bool stopped() const { return stopped_.load(); }
  std::uint64_t written_bytes() const { return written_.load(); }
  /// Waits until so many bytes may be written; false: it was stopped meanwhile.
  bool take_turn(std::size_t bytes);

  Result<std::unique_ptr<File>> open(std::string_view path) override { return files_.open(path); }
  Result<std::unique_ptr<File>> create(std::string_view path) override;
  Status rename(std::string_view from, std::string_view to) override { return files_.rename(from, to); }
  Status remove(std::string_view path) override { return files_.remove(path); }
  Status make_folder(std::string_view path) override { return files_.make_folder(path); }
  Status remove_folder(std::string_view path) override { return files_.remove_folder(path); }
  Result<Vector<String>> list(std::string_view path) override { return files_.list(path); }
  Result<bool> is_link(std::string_view path) override { return files_.is_link(path); }
  Result<String> identity(std::string_view path) override { return files_.identity(path); }
  Status sync_folder(std::string_view path) override { return files_.sync_folder(path); }
  Result<std::unique_ptr<FileLock>> lock(std::string_view path, LockKind kind, bool wait) override {
    return files_.lock(path, kind, wait);
  }
  Result<String> new_name() override { return files_.new_name(); }

 private:
  FileSystem& files_;
  storage::TokenBucket bucket_;
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> written_{0};
};

}  // namespace quern::checkpoint
