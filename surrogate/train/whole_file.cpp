// A sibling with the process's number in its name, until it has all bytes.
#include "surrogate/train/whole_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace quern::surrogate {
namespace {

bool write_and_close(int file, std::span<const std::uint8_t> bytes, bool sync) {
  bool good = true;
  while (good && !bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written >= 0) bytes = bytes.subspan(static_cast<std::size_t>(written));
    good = written >= 0 || errno == EINTR;
  }
  good = good && (!sync || fsync(file) == 0);
  const int error = errno;
  if (close(file) != 0) return false;
  errno = error;
  return good;
}

}  // namespace

bool write_whole_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  struct stat old {};
  const bool exists = stat(path.c_str(), &old) == 0;
  if (exists && !S_ISREG(old.st_mode)) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return file >= 0 && write_and_close(file, bytes, false);
  }
  std::error_code problem;
  const std::string target = exists ? std::filesystem::canonical(path, problem).string() : path;
  const std::string part = target + "." + std::to_string(getpid()) + ".part";
  if (problem) {
    errno = problem.value();
    return false;
  }
  const int file = open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return false;
  if (exists) static_cast<void>(!fchmod(file, old.st_mode & 0777));
  if (write_and_close(file, bytes, true) && std::rename(part.c_str(), target.c_str()) == 0) return true;
  const int error = errno;
  unlink(part.c_str());
  errno = error;
  return false;
}

}  // namespace quern::surrogate
