// Files that pass everything on to others: the base of those that change a few operations.
#pragma once

#include <utility>

#include "storage/file_system.h"

namespace quern::storage {

class ForwardingFile : public File {
 public:
  explicit ForwardingFile(std::unique_ptr<File> file) : file_(std::move(file)) {}
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    return file_->read_at(offset, out);
  }
  Result<std::size_t> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    return file_->write_at(offset, bytes);
  }
  Result<std::uint64_t> size() override { return file_->size(); }
  Status cut(std::uint64_t bytes) override { return file_->cut(bytes); }
  Status sync() override { return file_->sync(); }

 private:
  std::unique_ptr<File> file_;
};

/// create_queue() is not passed on: it writes through this object's create(), so that a change there holds for queues.
class ForwardingFiles : public FileSystem {
 public:
  /// `files` must outlive this.
  explicit ForwardingFiles(FileSystem& files) : files_(files) {}
  Result<std::unique_ptr<File>> open(std::string_view path) override { return files_.open(path); }
  Result<std::unique_ptr<File>> create(std::string_view path) override { return files_.create(path); }
  Status rename(std::string_view from, std::string_view to) override { return files_.rename(from, to); }
  Status remove(std::string_view path) override { return files_.remove(path); }
  Status make_folder(std::string_view path) override { return files_.make_folder(path); }
  Status remove_folder(std::string_view path) override { return files_.remove_folder(path); }
  Result<Vector<String>> list(std::string_view path) override { return files_.list(path); }
  Result<bool> is_link(std::string_view path) override { return files_.is_link(path); }
  Status sync_folder(std::string_view path) override { return files_.sync_folder(path); }
  Result<std::unique_ptr<FileLock>> lock(std::string_view path, LockKind kind, bool wait) override {
    return files_.lock(path, kind, wait);
  }
  Result<String> new_name() override { return files_.new_name(); }
  Result<String> identity(std::string_view path) override { return files_.identity(path); }

 protected:
  FileSystem& files() { return files_; }

 private:
  FileSystem& files_;
};

}  // namespace quern::storage
