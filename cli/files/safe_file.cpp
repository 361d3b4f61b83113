// Temporary sibling, fsync, rename; and the checks that come before any byte is written.
#include "cli/files/safe_file.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/files/file_names.h"
#include "cli/files/interrupt.h"

namespace quern::cli {
namespace {

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Replacing a symbolic link's target keeps the link.
std::string follow_link(const std::string& path) {
  char resolved[PATH_MAX];
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode) && realpath(path.c_str(), resolved) != nullptr)
    return resolved;
  return path;
}

constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
constexpr std::size_t kSuffixLength = 10;
constexpr std::string_view kTemporaryEnd = ".part";

/// What the names of temporary files of a path begin with. A long name is cut, so that the suffix fits into the usual
/// 255 bytes.
std::string temporary_begin(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return "." + (slash == std::string::npos ? path : path.substr(slash + 1)).substr(0, 200) + ".";
}

std::string random_suffix() {
  std::array<unsigned char, kSuffixLength> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    fail(Exit::io, "the system gives no random numbers for the name of a temporary file");
  std::string out;
  for (const unsigned char byte : bytes) out += kLetters[byte % (sizeof kLetters - 1)];
  return out;
}

[[noreturn]] void fail_exists(const std::string& path) {
  fail(Exit::io, path + ": exists already; give -f to replace it or -o to write elsewhere");
}

}  // namespace

SafeFile::SafeFile(const std::string& path, const Options& options)
    : path_(path), target_(follow_link(path)), replace_(options.replace) {
  struct stat info {};
  const bool exists = stat(target_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) fail(Exit::io, path + ": is a directory; name a file in it");
  if (exists && !S_ISREG(info.st_mode)) {
    direct_ = true;
    temporary_ = target_;
    if (options.name_only)
      fail(Exit::io, path + ": this kind of file cannot be written to a device or pipe; name a regular file");
    fd_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd_ < 0) fail_errno(path, "open for writing");
    return;
  }
  if (exists && !options.replace) fail_exists(path);
  create_temporary(exists ? (info.st_mode & 0777) | 0600 : options.mode, options.name_only);
}

void SafeFile::create_temporary(mode_t mode, bool name_only) {
  const std::string folder = folder_of(target_);
  if (access(folder.c_str(), W_OK | X_OK) != 0) fail_errno(path_, "write in folder " + folder);
  const std::string begin = temporary_begin(target_);
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = fmt::format("{}/{}{}{}", folder, begin, random_suffix(), kTemporaryEnd);
    const SignalGuard guard;
    if (name_only) {
      struct stat info {};
      if (lstat(temporary_.c_str(), &info) == 0) continue;
    } else {
      fd_ = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
      if (fd_ < 0 && errno == EEXIST) continue;
      if (fd_ < 0) fail_errno(path_, "create a temporary file beside it");
    }
    slot_ = register_temporary(temporary_);
    active_ = true;
    return;
  }
  fail(Exit::io, path_ + ": no free name for a temporary file beside it");
}

void SafeFile::remove_temporary() {
  unlink(temporary_.c_str());
  forget_temporary(slot_);
  active_ = false;
}

SafeFile::~SafeFile() {
  if (fd_ >= 0) close(fd_);
  if (active_) remove_temporary();
}

void SafeFile::take_time_of(const std::string& input) {
  struct stat info {};
  if (input != "-" && stat(input.c_str(), &info) == 0 && S_ISREG(info.st_mode)) modified_ = info.st_mtim;
}

void SafeFile::commit() {
  if (direct_) {
    const int result = close(fd_);
    fd_ = -1;
    if (result != 0) fail_errno(path_, "write");
    return;
  }
  if (fd_ < 0) fd_ = open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) fail_errno(path_, "open what was written");
  if (modified_) {
    // A file system that keeps no such times is no error.
    const timespec times[2] = {{0, UTIME_OMIT}, *modified_};
    static_cast<void>(futimens(fd_, times));
  }
  if (fsync(fd_) != 0) fail_errno(path_, "write to disk");
  const int closed = close(fd_);
  fd_ = -1;
  if (closed != 0) fail_errno(path_, "write to disk");

  const SignalGuard guard;
  int result = -1;
  if (replace_) {
    result = rename(temporary_.c_str(), target_.c_str());
  } else {
    // Somebody else may have created the file since it was looked for; a hard link refuses then. File systems without
    // hard links get a second look and a rename.
    result = link(temporary_.c_str(), target_.c_str());
    if (result == 0) {
      unlink(temporary_.c_str());
    } else if (errno == EEXIST) {
      fail_exists(path_);
    } else {
      struct stat info {};
      if (lstat(target_.c_str(), &info) == 0) fail_exists(path_);
      result = rename(temporary_.c_str(), target_.c_str());
    }
  }
  if (result != 0) fail_errno(path_, "rename the finished file into place");
  forget_temporary(slot_);
  active_ = false;
  // The new name itself is safe once the folder is; a file system that cannot sync folders is no error.
  const int folder = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    (void)fsync(folder);
    close(folder);
  }
}

void remove_leftovers(const std::string& path) {
  const std::string target = follow_link(path), begin = temporary_begin(target);
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (std::filesystem::directory_iterator at(folder_of(target), error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.size() != begin.size() + kSuffixLength + kTemporaryEnd.size() || !name.starts_with(begin) ||
        !name.ends_with(kTemporaryEnd))
      continue;
    if (name.substr(begin.size(), kSuffixLength).find_first_not_of(kLetters) == std::string::npos)
      found.push_back(at->path());
  }
  for (const std::filesystem::path& left : found)
    if (std::filesystem::is_regular_file(std::filesystem::symlink_status(left, error)))
      std::filesystem::remove(left, error);
}

ScopedUmask::ScopedUmask(mode_t closed) : saved_(umask(0)) { umask(saved_ | (closed & 0777)); }
ScopedUmask::~ScopedUmask() { umask(saved_); }

mode_t mode_like(const std::string& input) {
  struct stat info {};
  if (input == "-" || stat(input.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return 0666;
  return (info.st_mode & 0666) | 0600;
}

void check_output(const std::string& input, const std::string& output, bool force, const char* option) {
  if (output == "-") return;
  struct stat to {};
  if (stat(output.c_str(), &to) != 0) return;
  if (S_ISDIR(to.st_mode)) fail(Exit::io, output + ": is a directory; name a file in it");
  struct stat from {};
  if (S_ISREG(to.st_mode) && input != "-" && stat(input.c_str(), &from) == 0 && from.st_dev == to.st_dev &&
      from.st_ino == to.st_ino)
    fail(Exit::usage, output + ": input and output are the same file; name another with " + option);
  if (S_ISREG(to.st_mode) && !force) fail_exists(output);
}

void check_stdout(bool force) {
  if (!force && isatty(STDOUT_FILENO) == 1)
    fail(Exit::usage, "standard output is a terminal; give -o FILE, redirect it, or insist with -f");
}

int open_spool_file() {
  const std::string folder = temporary_folder();
  std::string name = folder + "/quern-XXXXXX";
  const SignalGuard guard;
  const int fd = mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) fail_errno(folder, "create a temporary file (set TMPDIR to another folder)");
  unlink(name.c_str());
  return fd;
}

std::string read_spool_file(int file) {
  std::string text;
  std::array<char, 4096> part{};
  off_t at = 0;
  for (ssize_t count; (count = pread(file, part.data(), part.size(), at)) > 0; at += count)
    text.append(part.data(), static_cast<std::size_t>(count));
  return text;
}

}  // namespace quern::cli
