// A file system of one thread for several, which can also go away as a share that is no longer mounted.
#pragma once

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <functional>
#include <mutex>

#include "storage/file_system.h"

namespace quern::testing {

class LockedFiles final : public storage::FileSystem {
 public:
  explicit LockedFiles(storage::FileSystem& files) : files_(files) {}

  /// While gone, everything fails with ENOENT, and writes to open files with EIO.
  void set_gone(bool gone) { gone_ = gone; }
  /// Gone from so many operations on: in the middle of what is being done.
  void go_after(int operations) {
    const std::lock_guard lock(mutex_);
    left_ = operations;
  }
  /// Does something to the disk while no thread uses it.
  void change(const std::function<void()>& what) {
    const std::lock_guard lock(mutex_);
    what();
  }
  /// From now on new files wait to be made.
  void hold(bool held) {
    const std::lock_guard lock(hold_mutex_);
    held_ = held;
    changed_.notify_all();
  }

  Result<std::unique_ptr<storage::File>> open(std::string_view path) override {
    return wrap(call([&] { return files_.open(path); }));
  }
  Result<std::unique_ptr<storage::File>> create(std::string_view path) override {
    {
      std::unique_lock lock(hold_mutex_);
      changed_.wait(lock, [&] { return !held_; });
    }
    return wrap(call([&] { return files_.create(path); }));
  }
  Status rename(std::string_view from, std::string_view to) override {
    return call([&] { return files_.rename(from, to); });
  }
  Status remove(std::string_view path) override {
    return call([&] { return files_.remove(path); });
  }
  Status make_folder(std::string_view path) override {
    return call([&] { return files_.make_folder(path); });
  }
  Status remove_folder(std::string_view path) override {
    return call([&] { return files_.remove_folder(path); });
  }
  Result<Vector<String>> list(std::string_view path) override {
    return call([&] { return files_.list(path); });
  }
  Result<bool> is_link(std::string_view path) override {
    return call([&] { return files_.is_link(path); });
  }
  Status sync_folder(std::string_view path) override {
    return call([&] { return files_.sync_folder(path); });
  }
  Result<std::unique_ptr<storage::FileLock>> lock(std::string_view path, storage::LockKind kind, bool wait) override {
    return call([&] { return files_.lock(path, kind, wait); });
  }
  Result<String> new_name() override {
    return call([&] { return files_.new_name(); });
  }

 private:
  class OneFile final : public storage::File {
   public:
    OneFile(std::unique_ptr<storage::File> file, LockedFiles& files) : file_(std::move(file)), files_(files) {}
    ~OneFile() override {
      const std::lock_guard lock(files_.mutex_);
      file_.reset();
    }
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
      return files_.call([&] { return file_->read_at(offset, out); }, EIO);
    }
    Result<std::size_t> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
      return files_.call([&] { return file_->write_at(offset, bytes); }, EIO);
    }
    Result<std::uint64_t> size() override {
      return files_.call([&] { return file_->size(); }, EIO);
    }
    Status cut(std::uint64_t bytes) override {
      return files_.call([&] { return file_->cut(bytes); }, EIO);
    }
    Status sync() override {
      return files_.call([&] { return file_->sync(); }, EIO);
    }

   private:
    std::unique_ptr<storage::File> file_;
    LockedFiles& files_;
  };

  template <class Call>
  auto call(const Call& body, int number = ENOENT) -> decltype(body()) {
    const std::lock_guard lock(mutex_);
    if (left_ > 0 && --left_ == 0) gone_ = true;
    if (gone_) return Status(StatusCode::io_error, "the system refused with error {0}", number);
    return body();
  }
  Result<std::unique_ptr<storage::File>> wrap(Result<std::unique_ptr<storage::File>> file) {
    if (!file.ok()) return file.status();
    return std::unique_ptr<storage::File>(new OneFile(std::move(file).value(), *this));
  }

  storage::FileSystem& files_;
  std::mutex mutex_, hold_mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  std::atomic<bool> gone_{false};
  int left_ = 0;
};

}  // namespace quern::testing
