// What tells that values are still what they were when they were hashed.
#pragma once

#include "checkpoint/storage.h"
#include "libcompress/core/buffer.h"

namespace quern::checkpoint {

/// Hash of a tensor's values, and a mark of each chunk of 1 MiB of them.
struct ValueHashes {
  ContentHash content;
  Vector<std::uint64_t> chunks;
};

/// Reads each chunk three times while it is in the cache: a chunk that changes meanwhile gets a mark that no bytes
/// have.
ValueHashes hash_values(std::span<const std::uint8_t> values);

/// The mark of a chunk: sums of its words and sums of these sums, mixed. Another value anywhere gives another mark, but
/// for chances of 2^-64; it is no guard against somebody who wants the same one.
std::uint64_t chunk_mark(std::span<const std::uint8_t> chunk);

/// True when these bytes, which begin at chunk `first`, have the marks that the hashes name.
bool has_marks(const ValueHashes& hashes, std::uint64_t first, std::span<const std::uint8_t> bytes);

/// Says that the tensor is not what it was when its save began.
Status fail_changed(std::string_view name, Report& report);

/// content_hash() of bytes that come one piece after the other.
class ContentHasher {
 public:
  Status begin();
  void add(std::span<const std::uint8_t> bytes);
  ContentHash finish() const;

 private:
  AlignedBuffer state_;
};

}  // namespace quern::checkpoint
