// Output files that appear complete or not at all: written to a temporary sibling, synced, renamed.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>

namespace quern::cli {

class SafeFile {
 public:
  struct Options {
    bool replace = false;  ///< an existing file may be replaced; its permissions stay
    /// Permissions of a new file before the umask; the file has them from its first moment.
    mode_t mode = 0666;
    /// The file is created by somebody else under temporary_path(): only the name is made here.
    bool name_only = false;
  };

  /// Throws CliError: the target exists, its folder is missing or may not be written. Devices and pipes (/dev/null) are
  /// written directly.
  SafeFile(const std::string& path, const Options& options);
  ~SafeFile();
  SafeFile(const SafeFile&) = delete;
  SafeFile& operator=(const SafeFile&) = delete;

  int descriptor() const { return fd_; }
  /// Where the bytes are until commit().
  const std::string& temporary_path() const { return temporary_; }
  bool is_direct() const { return direct_; }

  /// Gives the file the modification time of `input` when it is finished, as compressors do; nothing for "-" and what
  /// is no regular file.
  void take_time_of(const std::string& input);

  /// Syncs, renames into place and syncs the folder. Without it the destructor removes everything.
  void commit();

 private:
  void create_temporary(mode_t mode, bool name_only);
  void remove_temporary();

  std::string path_;    // as the user gave it, for messages
  std::string target_;  // with a final symbolic link followed
  std::string temporary_;
  int fd_ = -1;
  std::size_t slot_ = 0;
  std::optional<timespec> modified_;
  bool replace_ = false;
  bool direct_ = false;
  bool active_ = false;
};

/// Removes what programs that were killed left beside `path`: temporary files that were to become it. For a caller who
/// knows that nobody is writing it.
void remove_leftovers(const std::string& path);

/// Takes permissions from files and folders that libraries make meanwhile, besides what the umask takes already.
class ScopedUmask {
 public:
  explicit ScopedUmask(mode_t closed);
  ~ScopedUmask();
  ScopedUmask(const ScopedUmask&) = delete;
  ScopedUmask& operator=(const ScopedUmask&) = delete;

 private:
  mode_t saved_;
};

/// Permissions for what is made from `input`: never open to more people than the input, always readable and writable by
/// the owner. 0666 when there is no such file.
mode_t mode_like(const std::string& input);

/// Throws when `output` exists and may not be replaced, is the same file as `input`, or is a directory. "-" passes.
/// `option` is what the output was named with.
void check_output(const std::string& input, const std::string& output, bool force, const char* option = "-o");

/// Throws when binary data would go to a terminal.
void check_stdout(bool force);

/// A nameless file in TMPDIR (or /tmp) that vanishes with its descriptor. Throws.
int open_spool_file();
/// All bytes of it; where it is read and written next stays.
std::string read_spool_file(int file);

}  // namespace quern::cli
