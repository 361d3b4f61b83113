// A file descriptor with an owner: reading, writing and syncing that survive short counts and interruptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <quern/status.h>

namespace quern::io {

/// Owns a descriptor, except for standard input and output, which stay open. Move-only.
class PosixFile {
 public:
  /// Opens for reading; "-" is standard input. Directories, missing files and missing permission fail with a sentence.
  static Result<PosixFile> open_for_reading(const std::string& path, std::string& detail);
  /// Creates or empties for writing; "-" is standard output.
  static Result<PosixFile> create(const std::string& path, std::string& detail);

  PosixFile(PosixFile&& other) noexcept;
  PosixFile& operator=(PosixFile&& other) noexcept;
  ~PosixFile();

  /// False for pipes, terminals and devices, whose size is not known.
  bool has_size() const { return has_size_; }
  std::uint64_t size() const { return size_; }
  int descriptor() const { return fd_; }

  /// Fills `out`; less only at the end of the file.
  Result<std::size_t> read(std::span<std::uint8_t> out);
  /// Moves on by `bytes`, by reading where seeking is not possible. Returns how many bytes there were.
  Result<std::uint64_t> skip(std::uint64_t bytes);
  Status write(std::span<const std::uint8_t> bytes);
  /// Syncs to the disk where the file can be synced, and closes. What the disk refuses is reported here.
  Status sync_and_close();

 private:
  PosixFile(int fd, bool owned) : fd_(fd), owned_(owned) {}
  void close_quietly();

  int fd_ = -1;
  bool owned_ = false;
  bool has_size_ = false;
  std::uint64_t size_ = 0;
};

/// Checks that `path` is a regular file with content that may be read, for libraries that open files themselves.
Status check_library_file(const std::string& path, const char* kind_name, std::string& detail);

}  // namespace quern::io
