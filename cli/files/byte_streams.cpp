// Descriptors, mappings and memory as byte sinks and sources.
#include "cli/files/byte_streams.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/args/exit_codes.h"
#include "cli/files/safe_file.h"
#include "cli/messages/clock.h"

namespace quern::cli {
namespace {

/// Some kernels refuse single transfers of 2 GiB and more.
constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;

}  // namespace

bool write_all(int fd, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), std::min(bytes.size(), kMaxTransfer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

Status FdSink::write(std::span<const std::uint8_t> bytes) {
  const Stopwatch watch;
  const bool written = write_all(fd_, bytes);
  seconds_ += watch.seconds();
  if (!written) {
    error_ = errno;
    return Status(StatusCode::io_error, "the output could not be written");
  }
  bytes_ += bytes.size();
  return {};
}

Mapping Mapping::of_descriptor(int fd, const std::string& name) {
  struct stat info {};
  if (fstat(fd, &info) != 0) fail_errno(name, "read");
  Mapping out;
  if (info.st_size == 0) return out;
  const auto bytes = static_cast<std::size_t>(info.st_size);
  void* pages = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (pages == MAP_FAILED) fail_errno(name, "map into memory");
  out.data_ = static_cast<const std::uint8_t*>(pages);
  out.size_ = bytes;
  return out;
}

Mapping Mapping::of_file(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) fail_errno(path, "open");
  if (S_ISDIR(info.st_mode)) fail(Exit::io, path + ": is a directory; name a file");
  if (!S_ISREG(info.st_mode)) fail(Exit::io, path + ": is no regular file; pipe it in and give - as the input");
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail_errno(path, "open");
  try {
    Mapping out = of_descriptor(fd, path);
    close(fd);
    return out;
  } catch (...) {
    close(fd);
    throw;
  }
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(const_cast<std::uint8_t*>(data_), size_);
}

Result<std::size_t> FdSource::read_raw(std::uint8_t* out, std::size_t bytes) {
  const Stopwatch watch;
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t count = ::read(fd_, out + done, std::min(bytes - done, kMaxTransfer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Status(StatusCode::io_error, "the input could not be read (error {0})", errno);
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  seconds_ += watch.seconds();
  return done;
}

Result<std::size_t> FdSource::read(std::span<std::uint8_t> out) {
  if (out.empty()) return std::size_t{0};
  std::size_t done = 0;
  if (has_ahead_) {
    out[0] = ahead_;
    has_ahead_ = false;
    done = 1;
  }
  QUERN_ASSIGN_OR_RETURN(const std::size_t count, read_raw(out.data() + done, out.size() - done));
  position_ += done + count;
  return done + count;
}

Status FdSource::seek(std::uint64_t) { return Status(StatusCode::io_error, "a pipe cannot seek"); }

Result<bool> FdSource::at_end() {
  if (has_ahead_) return false;
  QUERN_ASSIGN_OR_RETURN(const std::size_t count, read_raw(&ahead_, 1));
  has_ahead_ = count == 1;
  return !has_ahead_;
}

SpoolFile::SpoolFile() : fd_(open_spool_file()) {}

SpoolFile::~SpoolFile() { close(fd_); }

void SpoolFile::write(std::span<const std::uint8_t> bytes) {
  if (!write_all(fd_, bytes)) fail_errno("temporary file", "write (set TMPDIR to a folder with more room)");
}

Mapping map_standard_input() {
  SpoolFile file;
  FdSource source(STDIN_FILENO);
  Buffer block(UINT64_C(1) << 20, "standard input");
  while (const std::size_t count = check(source.read({block.data(), block.size()}), Phase::decode, "standard input"))
    file.write({block.data(), count});
  return file.map();
}

}  // namespace quern::cli
