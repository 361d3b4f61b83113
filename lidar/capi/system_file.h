// Files of the operating system for the C interface: whole files in, sources that can seek, and outputs that appear
// whole or not at all.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>
#include <quern/stream_io.h>

namespace quern::lidar::capi {

/// A file open for reading.
class FileSource final : public ByteSource, public Allocated {
 public:
  FileSource() = default;
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  /// Fails with io_error where there is no regular file that may be read.
  Status open(const char* path);
  Result<std::size_t> read(std::span<std::uint8_t> out) override;
  bool can_seek() const override { return true; }
  Status seek(std::uint64_t offset) override;
  std::uint64_t size() const override { return size_; }
  std::uint64_t position() const override { return at_; }

 private:
  int fd_ = -1;
  std::uint64_t size_ = 0;
  std::uint64_t at_ = 0;
};

Result<Vector<std::uint8_t>> read_file(const char* path);

/// A temporary file beside `path`, which takes its name when it is finished; removed otherwise.
class NewFile final : public ByteSink {
 public:
  NewFile() = default;
  ~NewFile() override;
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  /// Fails with io_error, also where `path` exists and may not be replaced.
  Status create(const String& path, bool replace);
  Status write(std::span<const std::uint8_t> bytes) override;
  /// Syncs the file, renames it, syncs the folder.
  Status finish();

 private:
  String path_;
  String temporary_;
  bool replace_ = false;
  int fd_ = -1;
};

}  // namespace quern::lidar::capi
