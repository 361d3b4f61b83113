// Sinks and sources over file descriptors, mappings and memory, as the pipeline takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <quern/status.h>
#include <quern/stream_io.h>

#include "cli/files/memory.h"

namespace quern::cli {

/// Writes all of `bytes`; returns false with errno set.
bool write_all(int fd, std::span<const std::uint8_t> bytes);

/// Writes to a descriptor the caller owns; counts bytes and the time spent writing.
class FdSink final : public ByteSink {
 public:
  explicit FdSink(int fd) : fd_(fd) {}
  Status write(std::span<const std::uint8_t> bytes) override;
  std::uint64_t bytes() const { return bytes_; }
  double seconds() const { return seconds_; }
  /// errno of the write that failed, else 0.
  int error() const { return error_; }

 private:
  int fd_;
  std::uint64_t bytes_ = 0;
  double seconds_ = 0;
  int error_ = 0;
};

/// A read-only mapping of a whole file or of a spool file. Move-only.
class Mapping {
 public:
  Mapping() = default;
  /// Throws CliError (io). An empty file gives an empty span.
  static Mapping of_descriptor(int fd, const std::string& name);
  /// Throws CliError (io); not for directories, pipes or devices.
  static Mapping of_file(const std::string& path);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

/// A pipe: reads in order, and can look one byte ahead to tell whether there is more.
class FdSource final : public ByteSource {
 public:
  explicit FdSource(int fd) : fd_(fd) {}
  Result<std::size_t> read(std::span<std::uint8_t> out) override;
  bool can_seek() const override { return false; }
  Status seek(std::uint64_t offset) override;
  std::uint64_t size() const override { return 0; }
  Result<bool> at_end();
  std::uint64_t position() const override { return position_; }
  double seconds() const { return seconds_; }

 private:
  Result<std::size_t> read_raw(std::uint8_t* out, std::size_t bytes);

  int fd_;
  bool has_ahead_ = false;
  std::uint8_t ahead_ = 0;
  std::uint64_t position_ = 0;
  double seconds_ = 0;
};

/// A nameless file in TMPDIR for what does not fit in memory and must be seen as a whole.
class SpoolFile {
 public:
  /// Throws CliError (io), as do all members.
  SpoolFile();
  ~SpoolFile();
  SpoolFile(const SpoolFile&) = delete;
  SpoolFile& operator=(const SpoolFile&) = delete;
  int descriptor() const { return fd_; }
  void write(std::span<const std::uint8_t> bytes);
  Mapping map() const { return Mapping::of_descriptor(fd_, "temporary file"); }

 private:
  int fd_;
};

/// All of standard input, kept in a temporary file. Throws CliError.
Mapping map_standard_input();

}  // namespace quern::cli
