// Writers of decoded arrays behind one face.
#include "cli/array_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include "cli/byte_streams.h"
#include "cli/exit_codes.h"
#include "cli/input_array.h"

namespace quern::cli {
ArrayOutput::ArrayOutput(const std::string& path, bool force, mode_t mode)
    : path_(path == "-" ? "standard output" : path), mode_(mode) {
  if (path == "-") return;
  kind_ = io::file_kind(path);
  if (!io::is_available(kind_))
    fail(Exit::usage, path +
                          ": this build cannot write that kind of file; write .npy or raw, or build with HDF5 and "
                          "netCDF");
  file_.emplace(path, SafeFile::Options{.replace = force, .mode = mode, .name_only = is_library_file()});
}

void ArrayOutput::begin(const io::ArrayMeta& meta, const std::string& dataset) {
  if (kind_ == io::FileKind::raw) return;
  const ScopedUmask mask(~mode_);
  std::string detail;
  auto writer = io::create_writer(file_->temporary_path(), kind_, meta, dataset, detail);
  if (!writer.ok()) {
    // The library speaks of the temporary name, the user knows the final one.
    const std::size_t at = detail.find(file_->temporary_path());
    if (at != std::string::npos) detail.replace(at, file_->temporary_path().size(), path_);
    fail_file(writer.status(), detail);
  }
  writer_ = std::move(writer).value();
}

void ArrayOutput::write(std::span<const std::uint8_t> bytes) {
  bytes_ += bytes.size();
  if (!writer_) {
    if (!write_all(file_ ? file_->descriptor() : STDOUT_FILENO, bytes)) fail_errno(path_, "write");
    return;
  }
  const Status status = writer_->write(bytes);
  if (!status.ok()) fail_file(status, path_ + ": " + status.text());
}

void ArrayOutput::end() {
  if (!writer_) return;
  const Status status = writer_->finish();
  writer_.reset();
  if (!status.ok()) fail_file(status, path_ + ": " + status.text());
}

void ArrayOutput::commit() {
  if (file_) file_->commit();
}

}  // namespace quern::cli
