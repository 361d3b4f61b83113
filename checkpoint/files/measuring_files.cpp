#include "checkpoint/files/measuring_files.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace quern::checkpoint {
namespace {

class MeasuredFile final : public File {
 public:
  MeasuredFile(MeasuringFiles::Content& content, bool keep) : content_(content), keep_(keep) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    if (offset >= content_.bytes.size()) return std::size_t{0};
    const std::size_t count = std::min(out.size(), content_.bytes.size() - static_cast<std::size_t>(offset));
    std::memcpy(out.data(), content_.bytes.data() + offset, count);
    return count;
  }
  Result<std::size_t> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    content_.size = std::max(content_.size, offset + bytes.size());
    if (keep_ && !bytes.empty()) {
      content_.bytes.resize(static_cast<std::size_t>(content_.size));
      std::memcpy(content_.bytes.data() + offset, bytes.data(), bytes.size());
    }
    return bytes.size();
  }
  Result<std::uint64_t> size() override { return content_.size; }
  Status cut(std::uint64_t bytes) override {
    content_.size = bytes;
    if (keep_) content_.bytes.resize(static_cast<std::size_t>(bytes));
    return {};
  }
  Status sync() override { return {}; }

 private:
  MeasuringFiles::Content& content_;
  bool keep_;
};

}  // namespace

Result<std::unique_ptr<File>> MeasuringFiles::open(std::string_view path) {
  for (const auto& content : written_)
    if (content->path == path) return std::unique_ptr<File>(new MeasuredFile(*content, keep_));
  return files().open(path);
}

Result<std::unique_ptr<File>> MeasuringFiles::create(std::string_view path) {
  auto made = std::unique_ptr<Content>(new Content);
  made->path = path;
  written_.push_back(std::move(made));
  return std::unique_ptr<File>(new MeasuredFile(*written_.back(), keep_));
}

Result<Vector<String>> MeasuringFiles::list(std::string_view path) {
  auto names = files().list(path);
  if (!names.ok() && is_missing(names.status())) return Vector<String>();
  return names;
}

Result<std::unique_ptr<FileLock>> MeasuringFiles::lock(std::string_view, LockKind kind, bool) {
  if (kind == LockKind::exclusive) return Status(StatusCode::io_error, "others may be at work", EWOULDBLOCK);
  return std::unique_ptr<FileLock>(new FileLock);
}

}  // namespace quern::checkpoint
