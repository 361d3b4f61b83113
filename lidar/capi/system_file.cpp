// POSIX files.
#include "lidar/capi/system_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace quern::lidar::capi {
namespace {

constexpr std::size_t kMostTransfer = std::size_t{1} << 30;
constexpr unsigned kMostAttempts = 1000;  // other calls that write the same file, and what killed ones have left

Status failed(const char* what) { return Status(StatusCode::io_error, what, errno); }

bool exists(const String& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0;
}

/// A new file beside `path`, with the permissions that any new file gets, and its name; -1 when none can be made.
int create_beside(const String& path, String& name) {
  int file = -1;
  for (unsigned attempt = 0; attempt < kMostAttempts && file < 0; ++attempt) {
    char ending[48];
    std::snprintf(ending, sizeof(ending), ".%ld.%u.part", static_cast<long>(getpid()), attempt);
    name = path;
    name += ending;
    file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno != EEXIST) break;
  }
  return file;
}

}  // namespace

FileSource::~FileSource() {
  if (fd_ >= 0) close(fd_);
}

Status FileSource::open(const char* path) {
  fd_ = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) return failed("the file cannot be opened (errno {0})");
  struct stat info {};
  if (fstat(fd_, &info) != 0) return failed("the file cannot be read (errno {0})");
  if (!S_ISREG(info.st_mode)) return Status(StatusCode::io_error, "this is no regular file");
  size_ = static_cast<std::uint64_t>(info.st_size);
  return {};
}

Result<std::size_t> FileSource::read(std::span<std::uint8_t> out) {
  for (;;) {
    const ssize_t count = pread(fd_, out.data(), std::min(out.size(), kMostTransfer), static_cast<off_t>(at_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("the file cannot be read (errno {0})");
    at_ += static_cast<std::uint64_t>(count);
    return static_cast<std::size_t>(count);
  }
}

Status FileSource::seek(std::uint64_t offset) {
  at_ = offset;
  return {};
}

Result<Vector<std::uint8_t>> read_file(const char* path) {
  FileSource source;
  QUERN_RETURN_IF_ERROR(source.open(path));
  Vector<std::uint8_t> out(static_cast<std::size_t>(source.size()));
  QUERN_ASSIGN_OR_RETURN(const std::size_t have, read_up_to(source, out));
  out.resize(have);
  return out;
}

NewFile::~NewFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

Status NewFile::create(const String& path, bool replace) {
  path_ = path;
  replace_ = replace;
  if (!replace && exists(path)) return Status(StatusCode::io_error, "the file exists already");
  fd_ = create_beside(path, temporary_);
  if (fd_ < 0) return failed("no temporary file can be made beside it (errno {0})");
  return {};
}

Status NewFile::write(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd_, bytes.data(), std::min(bytes.size(), kMostTransfer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return failed("the file cannot be written (errno {0})");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

Status NewFile::finish() {
  if (fsync(fd_) != 0) return failed("the file cannot be written to disk (errno {0})");
  // A hard link refuses where somebody made the file meanwhile.
  const int result = replace_ ? rename(temporary_.c_str(), path_.c_str()) : link(temporary_.c_str(), path_.c_str());
  if (result != 0) return failed("the finished file cannot take its name (errno {0})");
  if (!replace_) unlink(temporary_.c_str());
  close(fd_);
  fd_ = -1;
  const std::size_t slash = path_.rfind('/');
  const String folder = slash == String::npos ? String(".") : slash == 0 ? String("/") : path_.substr(0, slash);
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory >= 0) {
    // A file system that cannot sync folders is no error.
    (void)fsync(directory);
    close(directory);
  }
  return {};
}

}  // namespace quern::lidar::capi
