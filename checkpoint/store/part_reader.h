// Reads records of a part, by its index or, where that is damaged, by walking over the part.
#pragma once

#include <memory>
#include <mutex>

#include "checkpoint/storage.h"
#include "checkpoint/store/part_format.h"
#include "libcompress/core/buffer.h"

namespace quern::checkpoint {

class PartReader : public Allocated {
 public:
  /// Reads header, index and trailer and compares them with what is known. Failures name the part.
  static Result<PartReader> open(FileSystem& files, String path, const PartIdentity& identity, const PartInfo& info,
                                 Report& report);

  const Vector<Record>& records() const { return records_; }
  const String& path() const { return path_; }
  /// Reads record `index` and checks it; its body replaces `body`. Safe from several threads.
  Status read(std::size_t index, Vector<std::uint8_t>& body, Report& report) const;
  /// The same without moving the body: it lies in `room`, which may serve any number of reads.
  Status read(std::size_t index, AlignedBuffer& room, std::span<const std::uint8_t>& body, Report& report) const;

 private:
  PartReader() = default;
  String path_;
  std::unique_ptr<File> file_;
  Vector<Record> records_;
};

/// Finds the records of a part whose index may be gone: every place aligned to 8 bytes where a header stands whose
/// checksum its body confirms. Failures are those of reading alone.
Result<Vector<Record>> scan_part(File& file);

/// True when the trailer and index that the records of `path` demand are those that `info` names: what a damaged
/// footer is mended with. Fills the bytes from the index to the end.
Result<bool> rebuild_footer(FileSystem& files, std::string_view path, const PartInfo& info, std::uint64_t& footer_begin,
                            Vector<std::uint8_t>& footer, Report& report);

}  // namespace quern::checkpoint
