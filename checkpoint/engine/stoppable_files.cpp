#include "checkpoint/engine/stoppable_files.h"

namespace quern::checkpoint {
namespace {

class StoppableFile final : public File {
 public:
  StoppableFile(std::unique_ptr<File> file, StoppableFiles& files) : file_(std::move(file)), files_(files) {}

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    return file_->read_at(offset, out);
  }
  Result<std::size_t> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    if (!files_.take_turn(bytes.size())) return Status(StatusCode::cancelled, "the save was cancelled");
    return file_->write_at(offset, bytes);
  }
  Result<std::uint64_t> size() override { return file_->size(); }
  Status cut(std::uint64_t bytes) override { return file_->cut(bytes); }
  Status sync() override { return file_->sync(); }

 private:
  std::unique_ptr<File> file_;
  StoppableFiles& files_;
};

}  // namespace

bool StoppableFiles::take_turn(std::size_t bytes) {
  written_.fetch_add(bytes);
  return storage::wait_turn(bucket_, bytes, [this] { return stopped(); });
}

Result<std::unique_ptr<File>> StoppableFiles::create(std::string_view path) {
  auto made = files_.create(path);
  if (!made.ok()) return made.status();
  return std::unique_ptr<File>(new StoppableFile(std::move(made).value(), *this));
}

}  // namespace quern::checkpoint
