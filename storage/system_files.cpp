// The operating system's files, by POSIX calls.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "storage/content_hash.h"
#include "storage/file_system.h"
#include "storage/report.h"

namespace quern::storage {
namespace {

constexpr std::size_t kMostBytesACall = std::size_t{1} << 30;

Status last_error() { return Status(StatusCode::io_error, "the system refused with error {0}", errno); }

/// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  /// The caller owns it from now on.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

Descriptor open_descriptor(const String& path, int flags) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  return Descriptor(fd);
}

class SystemFile final : public File {
 public:
  explicit SystemFile(Descriptor fd) : fd_(std::move(fd)) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    ssize_t got = -1;
    do {
      got = ::pread(fd_.get(), out.data(), std::min(out.size(), kMostBytesACall), static_cast<off_t>(offset));
    } while (got < 0 && errno == EINTR);
    if (got < 0) return last_error();
    return static_cast<std::size_t>(got);
  }
  Result<std::size_t> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    ssize_t done = -1;
    do {
      done = ::pwrite(fd_.get(), bytes.data(), std::min(bytes.size(), kMostBytesACall), static_cast<off_t>(offset));
    } while (done < 0 && errno == EINTR);
    if (done < 0) return last_error();
    return static_cast<std::size_t>(done);
  }
  Result<std::uint64_t> size() override {
    struct stat info {};
    if (::fstat(fd_.get(), &info) != 0) return last_error();
    return static_cast<std::uint64_t>(info.st_size);
  }
  Status cut(std::uint64_t bytes) override {
    return ::ftruncate(fd_.get(), static_cast<off_t>(bytes)) == 0 ? Status() : last_error();
  }
  Status sync() override { return ::fdatasync(fd_.get()) == 0 ? Status() : last_error(); }

 private:
  Descriptor fd_;
};

class SystemLock final : public FileLock {
 public:
  explicit SystemLock(Descriptor fd) : fd_(std::move(fd)), process_(::getpid()) {}
  /// Children of a fork have the descriptor too, so that closing it here would not give the lock back; in a child the
  /// lock is the parent's.
  ~SystemLock() override {
    if (::getpid() == process_) (void)::flock(fd_.get(), LOCK_UN);
  }

 private:
  Descriptor fd_;
  pid_t process_;
};

class SystemFiles final : public FileSystem {
 public:
  Result<std::unique_ptr<File>> open(std::string_view path) override {
    return wrap(open_descriptor(String(path), O_RDONLY));
  }
  Result<std::unique_ptr<File>> create(std::string_view path) override {
    return wrap(open_descriptor(String(path), O_RDWR | O_CREAT | O_EXCL));
  }
  Result<std::unique_ptr<WriteQueue>> create_queue(std::string_view path, unsigned depth) override {
    const String name(path);
    constexpr int kNew = O_RDWR | O_CREAT | O_EXCL;
    Descriptor fd = open_descriptor(name, kNew | O_DIRECT);
    bool direct = fd.ok();
    if (!direct && errno == EINVAL) {
      // This file system has no O_DIRECT; some make the file before they say so.
      fd = open_descriptor(name, kNew);
      if (!fd.ok() && errno == EEXIST) fd = open_descriptor(name, O_RDWR);
    }
    if (!fd.ok()) return last_error();
    if (auto queue = make_uring_queue(fd.get(), direct, depth)) {
      (void)fd.release();
      return queue;
    }
    // Without io_uring the page cache is what lets several blocks be under way.
    if (direct && ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) & ~O_DIRECT) != 0) return last_error();
    QUERN_ASSIGN_OR_RETURN(auto file, wrap(std::move(fd)));
    return make_plain_queue(std::move(file));
  }
  Status rename(std::string_view from, std::string_view to) override {
    return answer(::rename(String(from).c_str(), String(to).c_str()));
  }
  Status remove(std::string_view path) override { return answer(::unlink(String(path).c_str())); }
  Status make_folder(std::string_view path) override { return answer(::mkdir(String(path).c_str(), 0777)); }
  Status remove_folder(std::string_view path) override { return answer(::rmdir(String(path).c_str())); }

  Result<Vector<String>> list(std::string_view path) override {
    DIR* const folder = ::opendir(String(path).c_str());
    if (folder == nullptr) return last_error();
    const std::unique_ptr<DIR, int (*)(DIR*)> owner(folder, ::closedir);
    Vector<String> names;
    errno = 0;
    while (const dirent* const entry = ::readdir(folder)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    if (errno != 0) return last_error();
    std::sort(names.begin(), names.end());
    return names;
  }
  Result<bool> is_link(std::string_view path) override {
    struct stat info {};
    if (::lstat(String(path).c_str(), &info) == 0) return S_ISLNK(info.st_mode);
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return last_error();
  }
  Result<String> identity(std::string_view path) override {
    struct stat info {};
    if (::stat(String(path).c_str(), &info) != 0) return last_error();
    return join({decimal(info.st_dev), ":", decimal(info.st_ino)});
  }
  Status sync_folder(std::string_view path) override {
    const Descriptor fd = open_descriptor(String(path), O_RDONLY | O_DIRECTORY);
    if (!fd.ok()) return last_error();
    return answer(::fsync(fd.get()));
  }

  Result<std::unique_ptr<FileLock>> lock(std::string_view path, LockKind kind, bool wait) override {
    const String name(path);
    for (;;) {
      Descriptor fd = open_descriptor(name, O_RDWR | O_CREAT);
      if (!fd.ok()) return last_error();
      const int operation = (kind == LockKind::shared ? LOCK_SH : LOCK_EX) | (wait ? 0 : LOCK_NB);
      int outcome = -1;
      do {
        outcome = ::flock(fd.get(), operation);
      } while (outcome != 0 && errno == EINTR);
      if (outcome != 0) return last_error();
      // Whoever held the lock before may have removed the file: then others lock another file of the same name.
      struct stat held {
      }, named{};
      if (::fstat(fd.get(), &held) != 0) return last_error();
      if (::stat(name.c_str(), &named) == 0 && held.st_ino == named.st_ino && held.st_dev == named.st_dev)
        return std::unique_ptr<FileLock>(new SystemLock(std::move(fd)));
    }
  }

  Result<String> new_name() override {
    std::array<std::uint64_t, 2> random{};
    if (::getrandom(random.data(), sizeof(random), 0) != static_cast<ssize_t>(sizeof(random))) return last_error();
    return hex(random[0]) + hex(random[1]);
  }

 private:
  static Status answer(int outcome) { return outcome == 0 ? Status() : last_error(); }
  static Result<std::unique_ptr<File>> wrap(Descriptor fd) {
    if (!fd.ok()) return last_error();
    return std::unique_ptr<File>(new SystemFile(std::move(fd)));
  }
};

}  // namespace

FileSystem& system_files() {
  static SystemFiles files;  // without state
  return files;
}

}  // namespace quern::storage
