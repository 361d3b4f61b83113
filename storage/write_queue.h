// A new file written from its start to its end, several blocks at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::storage {

class File;

/// Bytes of a block, and what its address and its place in the file are multiples of. Files that bypass the page cache
/// (O_DIRECT) need the latter.
inline constexpr std::size_t kQueueBlock = std::size_t{1} << 20;
inline constexpr std::size_t kQueueAlignment = 4096;
inline constexpr unsigned kMaxQueueDepth = 8;

/// One thread. The queue owns `depth` blocks: that is its memory. After a failure nothing but the destructor is called.
class WriteQueue : public Allocated {
 public:
  virtual ~WriteQueue() = default;
  /// A block to fill, kQueueBlock bytes; waits until one is free.
  virtual Result<std::span<std::uint8_t>> block() = 0;
  /// Appends the first `bytes` of the block that was handed out last. All but the file's last block are full. Returns
  /// before they are written; what fails later is the failure of a later call.
  virtual Status write(std::size_t bytes) = 0;
  /// Waits for everything; the file survives a power cut once this returns.
  virtual Status finish() = 0;
};

/// Writes block after block by File::write_at(), each before write() returns: the queue of any file.
std::unique_ptr<WriteQueue> make_plain_queue(std::unique_ptr<File> file);

/// io_uring, on a descriptor that is open for writing and then belongs to the queue. `direct`: it was opened with
/// O_DIRECT. Null: this build or this kernel has no io_uring, and the descriptor stays the caller's.
std::unique_ptr<WriteQueue> make_uring_queue(int descriptor, bool direct, unsigned depth);

}  // namespace quern::storage
