#include "checkpoint/engine/stoppable_files.h"

namespace quern::checkpoint {
namespace {

class StoppableFile final : public storage::ForwardingFile {
 public:
  StoppableFile(std::unique_ptr<File> file, StoppableFiles& files) : ForwardingFile(std::move(file)), files_(files) {}

  Result<std::size_t> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    if (!files_.take_turn(bytes.size())) return Status(StatusCode::cancelled, "the save was cancelled");
    return ForwardingFile::write_at(offset, bytes);
  }

 private:
  StoppableFiles& files_;
};

}  // namespace

bool StoppableFiles::take_turn(std::size_t bytes) {
  written_.fetch_add(bytes);
  return storage::wait_turn(bucket_, bytes, [this] { return stopped(); });
}

Result<std::unique_ptr<File>> StoppableFiles::create(std::string_view path) {
  auto made = files().create(path);
  if (!made.ok()) return made.status();
  return std::unique_ptr<File>(new StoppableFile(std::move(made).value(), *this));
}

}  // namespace quern::checkpoint
