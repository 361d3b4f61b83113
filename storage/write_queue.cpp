// The queue that every file system has.
#include "storage/write_queue.h"

#include "storage/file_system.h"

namespace quern::storage {
namespace {

class PlainQueue final : public WriteQueue {
 public:
  explicit PlainQueue(std::unique_ptr<File> file) : file_(std::move(file)) {}

  Result<std::span<std::uint8_t>> block() override {
    block_.resize(kQueueBlock);
    return std::span(block_);
  }
  Status write(std::size_t bytes) override {
    QUERN_RETURN_IF_ERROR(write_fully(*file_, written_, std::span(block_).first(bytes)));
    written_ += bytes;
    return {};
  }
  Status finish() override { return file_->sync(); }

 private:
  std::unique_ptr<File> file_;
  Vector<std::uint8_t> block_;
  std::uint64_t written_ = 0;
};

}  // namespace

std::unique_ptr<WriteQueue> make_plain_queue(std::unique_ptr<File> file) {
  return std::unique_ptr<WriteQueue>(new PlainQueue(std::move(file)));
}

}  // namespace quern::storage
