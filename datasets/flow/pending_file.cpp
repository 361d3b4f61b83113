// Sync and rename, on POSIX.
#include "datasets/flow/pending_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace quern::flow {

std::string io_detail(const char* verb, const std::string& path, int error) {
  return std::string("cannot ") + verb + " " + path + ": " + std::generic_category().message(error);
}

PendingFile::~PendingFile() {
  if (!committed_) ::unlink(temporary_.c_str());
}

Status PendingFile::commit(std::string& detail) {
  const Status failed(StatusCode::io_error, "cannot complete a file");
  const int fd = ::open(temporary_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    detail = io_detail("open", temporary_, errno);
    return failed;
  }
  const int synced = ::fsync(fd);
  const int sync_error = errno;
  ::close(fd);
  if (synced != 0) {
    detail = io_detail("sync", temporary_, sync_error);
    return failed;
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    detail = io_detail("rename to", path_, errno);
    return failed;
  }
  committed_ = true;
  return {};
}

}  // namespace quern::flow
