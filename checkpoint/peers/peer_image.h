// A checkpoint of a store as one run of bytes, for parity over several stores: its manifest, parts and parity files,
// one behind the other. Nothing in it is a path: names follow from the manifest.
#pragma once

#include "checkpoint/store/store.h"

namespace quern::checkpoint {

/// Reads an image out of a store's files. What a manifest names never changes, so equal offsets give equal bytes until
/// the checkpoint is removed; then reading fails. One that is kept for others alone has the image that it had before.
class PeerImage {
 public:
  /// Opens no file of values. Fails where the manifest cannot be read.
  static Result<PeerImage> open(const Store& store, const CheckpointName& name, Report& report);

  std::uint64_t bytes() const { return bytes_; }
  /// Bytes from `offset` on; behind the image's end they are zeros.
  Status read(std::uint64_t offset, std::span<std::uint8_t> out, Report& report) const;
  /// A hash of the hashes of all MiB of it. O(bytes).
  Result<ContentHash> hash(Report& report) const;

 private:
  struct Piece {
    String path;  ///< empty: the head
    std::uint64_t begin = 0, bytes = 0;
  };
  FileSystem* files_ = nullptr;
  Vector<std::uint8_t> head_;  ///< sizes, and the manifest
  Vector<Piece> pieces_;
  std::uint64_t bytes_ = 0;
};

/// Writes an image that comes piece by piece into a store that holds nothing else of value, as a checkpoint that is not
/// proven yet: whoever takes it from there compares its hashes. Nothing is synced.
class PeerImageWriter {
 public:
  explicit PeerImageWriter(const Store& store) : store_(store) {}

  Status write(std::span<const std::uint8_t> bytes, Report& report);
  /// Fails unless the image is complete and has that hash; its name then.
  Result<CheckpointName> finish(const ContentHash& hash, Report& report);

 private:
  Status begin_files(Report& report);
  void add_to_hash(std::span<const std::uint8_t> bytes);

  const Store& store_;
  Vector<std::uint8_t> head_, block_, hashes_;
  Manifest manifest_;
  bool begun_ = false;
  Vector<std::pair<String, std::uint64_t>> rest_;  ///< files and the bytes that are still to come for each
  std::size_t at_ = 0;
  std::uint64_t offset_ = 0;
  std::unique_ptr<File> file_;
};

}  // namespace quern::checkpoint
