#include "storage/throttled_files.h"

#include <algorithm>

namespace quern::storage {
namespace {

/// What is read or written at once: a caller of more waits in between, as for a disk.
constexpr std::size_t kPiece = std::size_t{1} << 20;

Status cancelled() { return Status(StatusCode::cancelled, "interrupted"); }

}  // namespace

class ThrottledFiles::ThrottledFile final : public ForwardingFile {
 public:
  ThrottledFile(std::unique_ptr<File> file, Disk& disk, const std::function<bool()>& stopped)
      : ForwardingFile(std::move(file)), disk_(disk), stopped_(stopped) {}
  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    if (stopped_()) return cancelled();
    auto got = ForwardingFile::read_at(offset, out.first(std::min(out.size(), kPiece)));
    if (got.ok() && !wait_turn(disk_.read, *got, stopped_)) return cancelled();
    return got;
  }
  Result<std::size_t> write_at(std::uint64_t offset, std::span<const std::uint8_t> bytes) override {
    if (stopped_()) return cancelled();
    auto done = ForwardingFile::write_at(offset, bytes.first(std::min(bytes.size(), kPiece)));
    if (done.ok() && !wait_turn(disk_.write, *done, stopped_)) return cancelled();
    return done;
  }

 private:
  Disk& disk_;
  const std::function<bool()>& stopped_;
};

void ThrottledFiles::add(std::string_view folder, double bytes_per_second) {
  auto disk = std::make_unique<Disk>();
  disk->folder = folder;
  disk->folder += "/";
  disk->read.set_rate(bytes_per_second);
  disk->write.set_rate(bytes_per_second);
  disks_.push_back(std::move(disk));
}

Result<std::unique_ptr<File>> ThrottledFiles::wrap(std::string_view path, Result<std::unique_ptr<File>> file) {
  if (!file.ok()) return file;
  for (const auto& disk : disks_)
    if (path.starts_with(disk->folder))
      return std::unique_ptr<File>(new ThrottledFile(std::move(file).value(), *disk, stopped_));
  return file;
}

Result<std::unique_ptr<File>> ThrottledFiles::open(std::string_view path) { return wrap(path, files().open(path)); }

Result<std::unique_ptr<File>> ThrottledFiles::create(std::string_view path) { return wrap(path, files().create(path)); }

}  // namespace quern::storage
