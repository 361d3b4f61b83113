// System calls behind PosixFile.
#include "libcompress/io/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "libcompress/io/error.h"

namespace quern::io {
namespace {

// Linux transfers at most about 2 GiB a call; this stays below it.
constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;

Status open_failure(const std::string& path, int number, const char* verb, std::string& detail) {
  switch (number) {
    case ENOENT: return fail(detail, StatusCode::io_error, path + " does not exist; check the path and its folder.");
    case EACCES:
    case EPERM:
      return fail(
          detail, StatusCode::io_error,
          "No permission to " + std::string(verb) + " " + path + "; check the rights of the file and its folder.");
    case EISDIR: return fail(detail, StatusCode::io_error, path + " is a directory; name a file.");
    default:
      return fail(detail, StatusCode::io_error,
                  "Cannot " + std::string(verb) + " " + path + ": " + errno_text(number) + ".");
  }
}

}  // namespace

PosixFile::PosixFile(PosixFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), owned_(other.owned_), has_size_(other.has_size_), size_(other.size_) {}

PosixFile& PosixFile::operator=(PosixFile&& other) noexcept {
  if (this != &other) {
    close_quietly();
    fd_ = std::exchange(other.fd_, -1);
    owned_ = other.owned_;
    has_size_ = other.has_size_;
    size_ = other.size_;
  }
  return *this;
}

PosixFile::~PosixFile() { close_quietly(); }

void PosixFile::close_quietly() {
  if (fd_ >= 0 && owned_) ::close(fd_);
  fd_ = -1;
}

Result<PosixFile> PosixFile::open_for_reading(const std::string& path, std::string& detail) {
  if (path == "-") return PosixFile(STDIN_FILENO, false);
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return open_failure(path, errno, "read", detail);
  PosixFile file(fd, true);
  struct stat info {};
  if (::fstat(fd, &info) != 0) return open_failure(path, errno, "read", detail);
  if (S_ISDIR(info.st_mode)) return open_failure(path, EISDIR, "read", detail);
  file.has_size_ = S_ISREG(info.st_mode);
  file.size_ = file.has_size_ ? static_cast<std::uint64_t>(info.st_size) : 0;
  return file;
}

Result<PosixFile> PosixFile::create(const std::string& path, std::string& detail) {
  if (path == "-") return PosixFile(STDOUT_FILENO, false);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) {
    if (errno == ENOENT)
      return fail(detail, StatusCode::io_error, "Cannot create " + path + ": its folder does not exist.");
    return open_failure(path, errno, "write", detail);
  }
  return PosixFile(fd, true);
}

Result<std::size_t> PosixFile::read(std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::read(fd_, out.data() + done, std::min(out.size() - done, kMaxTransfer));
    if (got == 0) break;
    if (got < 0) {
      if (errno == EINTR) continue;
      return Status(StatusCode::io_error, "reading failed (errno {0})", errno);
    }
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Result<std::uint64_t> PosixFile::skip(std::uint64_t bytes) {
  if (has_size_) {
    const std::uint64_t there = std::min(bytes, size_);
    if (::lseek(fd_, static_cast<off_t>(there), SEEK_CUR) < 0)
      return Status(StatusCode::io_error, "seeking failed (errno {0})", errno);
    return there;
  }
  std::array<std::uint8_t, 16384> scratch;
  std::uint64_t done = 0;
  while (done < bytes) {
    const std::size_t ask = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - done, scratch.size()));
    QUERN_ASSIGN_OR_RETURN(const std::size_t got, read({scratch.data(), ask}));
    done += got;
    if (got < ask) break;
  }
  return done;
}

Status PosixFile::write(std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd_, bytes.data(), std::min(bytes.size(), kMaxTransfer));
    if (put < 0) {
      if (errno == EINTR) continue;
      if (errno == ENOSPC) return {StatusCode::io_error, "the disk is full; make room or choose another place"};
      return {StatusCode::io_error, "writing failed (errno {0})", errno};
    }
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Status PosixFile::sync_and_close() {
  // Pipes and devices cannot be synced and say EINVAL or ENOTSUP; that loses nothing.
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS && errno != EBADF) {
    if (errno == ENOSPC) return {StatusCode::io_error, "the disk is full; make room or choose another place"};
    return {StatusCode::io_error, "syncing to the disk failed (errno {0})", errno};
  }
  const int fd = std::exchange(fd_, -1);
  if (owned_ && ::close(fd) != 0 && errno != EINTR)
    return {StatusCode::io_error, "closing the file failed (errno {0})", errno};
  return {};
}

Status check_library_file(const std::string& path, const char* kind_name, std::string& detail) {
  if (path == "-")
    return fail(detail, StatusCode::invalid_argument,
                std::string(kind_name) + " files cannot be read from standard input, they need seeking; name a file.");
  auto file = PosixFile::open_for_reading(path, detail);
  if (!file.ok()) return file.status();
  if (!file->has_size())
    return fail(detail, StatusCode::io_error,
                path + " is not a regular file; " + kind_name + " files need seeking, so copy it to a disk first.");
  if (file->size() == 0)
    return fail(detail, StatusCode::io_error, path + " is empty; it holds no " + kind_name + " data.");
  return {};
}

}  // namespace quern::io
