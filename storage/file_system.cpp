// What is built on the interface alone.
#include "storage/file_system.h"

#include <cerrno>

#include "storage/report.h"

namespace quern::storage {

namespace {

bool has_errno(const Status& status, int number) {
  return status.code() == StatusCode::io_error && status.first() == number;
}

}  // namespace

Result<String> FileSystem::identity(std::string_view path) {
  return join({decimal(reinterpret_cast<std::uintptr_t>(this)), ":", path});
}

Result<std::unique_ptr<WriteQueue>> FileSystem::create_queue(std::string_view path, unsigned /*depth*/) {
  QUERN_ASSIGN_OR_RETURN(auto file, create(path));
  return make_plain_queue(std::move(file));
}

bool is_missing(const Status& status) { return has_errno(status, ENOENT) || has_errno(status, ENOTDIR); }
bool is_busy(const Status& status) { return has_errno(status, EWOULDBLOCK); }
bool exists_already(const Status& status) { return has_errno(status, EEXIST); }

Status read_fully(File& file, std::uint64_t offset, std::span<std::uint8_t> out) {
  while (!out.empty()) {
    QUERN_ASSIGN_OR_RETURN(const std::size_t got, file.read_at(offset, out));
    if (got == 0)
      return Status(StatusCode::truncated, "the file ends {0} bytes too early", static_cast<std::int64_t>(out.size()));
    out = out.subspan(got);
    offset += got;
  }
  return {};
}

Status write_fully(File& file, std::uint64_t offset, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    QUERN_ASSIGN_OR_RETURN(const std::size_t done, file.write_at(offset, bytes));
    if (done == 0) return Status(StatusCode::io_error, "a write came to nothing", EIO);
    bytes = bytes.subspan(done);
    offset += done;
  }
  return {};
}

Result<Vector<std::uint8_t>> read_file(FileSystem& files, std::string_view path, std::uint64_t limit) {
  QUERN_ASSIGN_OR_RETURN(const auto file, files.open(path));
  QUERN_ASSIGN_OR_RETURN(const std::uint64_t size, file->size());
  if (size > limit)
    return Status(StatusCode::corrupt, "the file has {0} bytes, {1} are the most allowed",
                  static_cast<std::int64_t>(size), static_cast<std::int64_t>(limit));
  Vector<std::uint8_t> out(static_cast<std::size_t>(size));
  QUERN_RETURN_IF_ERROR(read_fully(*file, 0, out));
  return out;
}

}  // namespace quern::storage
