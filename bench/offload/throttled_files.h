// The system's files, read and written at no more than so many bytes a second in each folder: a token bucket for each
// direction, with a burst of 50 milliseconds. Stands in for disks that are slower than this machine's.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "storage/file_system.h"

namespace quern::bench {

/// One direction of one disk.
class Bucket {
 public:
  explicit Bucket(double bytes_per_second) : rate_(bytes_per_second) {}
  /// Returns when that many bytes may have passed.
  void pass(std::size_t bytes) {
    std::chrono::steady_clock::time_point until;
    {
      const std::lock_guard lock(mutex_);
      const auto now = std::chrono::steady_clock::now();
      // What a thread overslept may be caught up with.
      constexpr auto kBurst = std::chrono::milliseconds(50);
      if (free_ < now - kBurst) free_ = now - kBurst;
      free_ += std::chrono::duration_cast<std::chrono::steady_clock::duration>(
          std::chrono::duration<double>(static_cast<double>(bytes) / rate_));
      until = free_;
    }
    std::this_thread::sleep_until(until);
  }

 private:
  const double rate_;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point free_{};
};

struct Disk {
  explicit Disk(double bytes_per_second) : read(bytes_per_second), write(bytes_per_second) {}
  Bucket read;
  Bucket write;
};

class ThrottledFiles final : public storage::FileSystem {
 public:
  /// Files below `folder` are on a disk of that rate in each direction.
  void add(const std::string& folder, double bytes_per_second) {
    disks_[folder] = std::make_unique<Disk>(bytes_per_second);
  }

  Result<std::unique_ptr<storage::File>> open(std::string_view path) override { return wrap(path, files_.open(path)); }
  Result<std::unique_ptr<storage::File>> create(std::string_view path) override {
    return wrap(path, files_.create(path));
  }
  Status rename(std::string_view from, std::string_view to) override { return files_.rename(from, to); }
  Status remove(std::string_view path) override { return files_.remove(path); }
  Status make_folder(std::string_view path) override { return files_.make_folder(path); }
  Status remove_folder(std::string_view path) override { return files_.remove_folder(path); }
  Result<Vector<String>> list(std::string_view path) override { return files_.list(path); }
  Result<bool> is_link(std::string_view path) override { return files_.is_link(path); }
  Result<String> identity(std::string_view path) override { return files_.identity(path); }
  Status sync_folder(std::string_view path) override { return files_.sync_folder(path); }
  Result<std::unique_ptr<storage::FileLock>> lock(std::string_view path, storage::LockKind kind, bool wait) override {
    return files_.lock(path, kind, wait);
  }
  Result<String> new_name() override { return files_.new_name(); }

 private:
  class ThrottledFile final : public storage::File {
   public:
    ThrottledFile(std::unique_ptr<storage::File> file, Disk& disk) : file_(std::move(file)), disk_(disk) {}
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
      auto got = file_->read_at(offset, out.first(std::min(out.size(), kPiece)));
      if (got.ok()) disk_.read.pass(*got);
      return got;
    }
    Result<std::size_t> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
      auto done = file_->write_at(offset, bytes.first(std::min(bytes.size(), kPiece)));
      if (done.ok()) disk_.write.pass(*done);
      return done;
    }
    Result<std::uint64_t> size() override { return file_->size(); }
    Status cut(std::uint64_t bytes) override { return file_->cut(bytes); }
    Status sync() override { return file_->sync(); }

   private:
    static constexpr std::size_t kPiece = std::size_t{1} << 20;
    std::unique_ptr<storage::File> file_;
    Disk& disk_;
  };

  Result<std::unique_ptr<storage::File>> wrap(std::string_view path, Result<std::unique_ptr<storage::File>> file) {
    if (!file.ok()) return file;
    for (const auto& [folder, disk] : disks_)
      if (path.starts_with(folder))
        return std::unique_ptr<storage::File>(new ThrottledFile(std::move(file).value(), *disk));
    return file;
  }

  storage::FileSystem& files_ = storage::system_files();
  std::map<std::string, std::unique_ptr<Disk>> disks_;
};

}  // namespace quern::bench
