// Writes one part from its header to its trailer.
#pragma once

#include <memory>

#include "checkpoint/storage.h"
#include "checkpoint/store/part_format.h"

namespace quern::checkpoint {

/// Appends records to a new file, a MiB at a time. After a failure nothing more may be written.
class PartWriter {
 public:
  static Result<PartWriter> create(FileSystem& files, String path, const PartIdentity& identity, Report& report);

  /// Appends a record of these pieces one behind the other; record.body_bytes and offset are filled in.
  Status add(Record record, std::span<const std::uint8_t> first, std::span<const std::uint8_t> second, Report& report);
  /// Appends a record that is ready: header, body, and zeros up to the alignment. Its offset is filled in.
  Status add_ready(Record record, std::span<const std::uint8_t> bytes, Report& report);

  /// A place that the part can be brought back to.
  struct Mark {
    std::uint64_t bytes = 0;
    std::size_t records = 0;
  };
  Mark mark() const { return {bytes(), records_.size()}; }
  /// Takes away what was added behind the mark.
  Status go_back(const Mark& mark, Report& report);

  /// Writes index and trailer and syncs.
  Result<PartInfo> finish(Report& report);

  std::size_t records() const { return records_.size(); }
  /// Bytes so far.
  std::uint64_t bytes() const { return written_ + pending_.size(); }

 private:
  PartWriter() = default;
  Status append(std::span<const std::uint8_t> bytes, Report& report);
  Status flush(Report& report);

  String path_;
  std::unique_ptr<File> file_;
  Vector<std::uint8_t> pending_;
  std::uint64_t written_ = 0;
  Vector<Record> records_;
  Vector<std::uint8_t> body_;
};

}  // namespace quern::checkpoint
