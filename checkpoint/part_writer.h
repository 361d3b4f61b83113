// Writes one part from its header to its trailer.
#pragma once

#include <memory>

#include "checkpoint/file_system.h"
#include "checkpoint/part_format.h"
#include "checkpoint/report.h"

namespace quern::checkpoint {

/// Appends records to a new file, a MiB at a time. After a failure nothing more may be written.
class PartWriter {
 public:
  static Result<PartWriter> create(FileSystem& files, String path, const PartIdentity& identity, Report& report);

  /// Appends a record of these pieces one behind the other; record.body_bytes and offset are filled in.
  Status add(Record record, std::span<const std::uint8_t> first, std::span<const std::uint8_t> second, Report& report);
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
