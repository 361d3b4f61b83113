// The few operations on files that stores need, behind an interface: the real ones below, and in the tests a disk
// that loses, tears and refuses. Failures are io_error with the errno as the status's first integer.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <quern/memory.h>
#include <quern/status.h>

#include "storage/write_queue.h"

namespace quern::storage {

/// An open file. Reads and writes may move fewer bytes than asked; a read of 0 bytes is the end of the file.
class File : public Allocated {
 public:
  virtual ~File() = default;
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) = 0;
  virtual Result<std::size_t> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) = 0;
  virtual Result<std::uint64_t> size() = 0;
  /// Cuts the file off at `bytes`, which it has.
  virtual Status cut(std::uint64_t bytes) = 0;
  /// Everything written so far survives a power cut once this returns (fdatasync; also the file's length).
  virtual Status sync() = 0;
};

/// Held until it dies, at the latest until the process does.
class FileLock : public Allocated {
 public:
  virtual ~FileLock() = default;
};

enum class LockKind { shared, exclusive };

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  /// For reading.
  virtual Result<std::unique_ptr<File>> open(std::string_view path) = 0;
  /// A new file for writing and reading; fails with EEXIST when there is one.
  virtual Result<std::unique_ptr<File>> create(std::string_view path) = 0;
  /// Puts a file in the place of another at once, or a folder where there is none.
  virtual Status rename(std::string_view from, std::string_view to) = 0;
  virtual Status remove(std::string_view path) = 0;
  virtual Status make_folder(std::string_view path) = 0;
  virtual Status remove_folder(std::string_view path) = 0;
  /// Names in a folder, sorted, without "." and "..".
  virtual Result<Vector<String>> list(std::string_view path) = 0;
  /// Whether the name is a symbolic link; false where there is nothing.
  virtual Result<bool> is_link(std::string_view path) = 0;
  /// Names made, renamed and removed in a folder survive a power cut once this returns.
  virtual Status sync_folder(std::string_view path) = 0;
  /// Locks a file, which is made when it is missing. Without `wait` fails with EWOULDBLOCK while others hold it.
  virtual Result<std::unique_ptr<FileLock>> lock(std::string_view path, LockKind kind, bool wait) = 0;
  /// A name nobody else uses: 32 hexadecimal digits.
  virtual Result<String> new_name() = 0;
  /// A new file that is written from start to end; here a plain queue on create(). `depth`: blocks under way, at most.
  virtual Result<std::unique_ptr<WriteQueue>> create_queue(std::string_view path, unsigned depth);
  /// What a folder or file has in common with itself under every other path, links followed, and with nothing else; here
  /// the path as it is written, and this object.
  virtual Result<String> identity(std::string_view path);
};

/// The operating system's files.
FileSystem& system_files();

bool is_missing(const Status& status);
bool is_busy(const Status& status);
bool exists_already(const Status& status);

/// Reads until `out` is full; fails with `truncated` when the file ends before.
Status read_fully(File& file, std::uint64_t offset, std::span<std::uint8_t> out);
Status write_fully(File& file, std::uint64_t offset, std::span<const std::uint8_t> bytes);
/// A whole file of at most `limit` bytes.
Result<Vector<std::uint8_t>> read_file(FileSystem& files, std::string_view path, std::uint64_t limit);

}  // namespace quern::storage
