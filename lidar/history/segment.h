// Segments: files of tile parts, each under its hash, with an index behind them. A segment is written once.
// Stored form: docs/format-history.md.
#pragma once

#include <cstdint>
#include <span>

#include "storage/content_hash.h"
#include "storage/file_system.h"
#include "storage/report.h"

namespace quern::lidar {

/// Where a part lies in its segment.
struct PartPlace {
  storage::ContentHash hash;
  std::uint64_t offset = 0;  ///< of its bytes
  std::uint64_t bytes = 0;
};

/// Collects parts in a new file.
class SegmentWriter {
 public:
  SegmentWriter(storage::FileSystem& files, String path) : files_(files), path_(std::move(path)) {}
  SegmentWriter(const SegmentWriter&) = delete;
  SegmentWriter& operator=(const SegmentWriter&) = delete;
  /// Removes a file that was not finished.
  ~SegmentWriter();

  /// Appends a part of less than 4 GiB; the first one makes the file.
  Status add(const storage::ContentHash& hash, std::span<const std::uint8_t> bytes, storage::Report& report);
  bool empty() const { return places_.empty(); }
  /// Writes the index and syncs the file. Returns the hash that names the segment.
  Result<storage::ContentHash> finish(storage::Report& report);

 private:
  Status write(std::span<const std::uint8_t> bytes, storage::Report& report);

  storage::FileSystem& files_;
  String path_;
  std::unique_ptr<storage::File> file_;
  std::uint64_t at_ = 0;
  bool finished_ = false;
  Vector<PartPlace> places_;
};

/// The parts of a segment by its index or, where that is damaged, by walking over them, as far as they are whole;
/// `whole` says which. Any bytes are safe. Fails where the system refuses to read.
Result<Vector<PartPlace>> read_segment(storage::File& file, bool& whole);

/// The name of a segment with these parts: the hash of its index.
storage::ContentHash segment_name(std::span<const PartPlace> places);

/// Whether the heads of these parts, which a walk over a damaged segment relies on, are as they must be.
bool heads_hold(storage::File& file, std::span<const PartPlace> places);

/// The bytes of a part; fails with `checksum_mismatch` where they are not those of its hash.
Result<Vector<std::uint8_t>> read_part_bytes(storage::File& file, const PartPlace& place);

}  // namespace quern::lidar
