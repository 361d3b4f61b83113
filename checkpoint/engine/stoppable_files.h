// Files of a store whose writes can be called off: what ends a save in the middle of a large tensor.
#pragma once

#include <atomic>

#include "checkpoint/storage.h"
#include "storage/forwarding_files.h"
#include "storage/token_bucket.h"

namespace quern::checkpoint {

/// Passes everything on. While stopped, writes to files that were made through it fail with `cancelled`; removing,
/// renaming and syncing folders go on, so that a save that ends cleans up behind itself.
class StoppableFiles final : public storage::ForwardingFiles {
 public:
  /// `most`: bytes a second that may be written, over times longer than a tenth of a second; 0: as fast as it goes.
  explicit StoppableFiles(FileSystem& files, double most = 0) : ForwardingFiles(files), bucket_(most) {}
  void stop(bool stopped) { stopped_.store(stopped); }
  bool stopped() const { return stopped_.load(); }
  std::uint64_t written_bytes() const { return written_.load(); }
  /// Waits until so many bytes may be written; false: it was stopped meanwhile.
  bool take_turn(std::size_t bytes);

  Result<std::unique_ptr<File>> create(std::string_view path) override;

 private:
  storage::TokenBucket bucket_;
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> written_{0};
};

}  // namespace quern::checkpoint
