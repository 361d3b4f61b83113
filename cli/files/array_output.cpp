// Writers of decoded arrays behind one face.
#include "cli/files/array_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include <fmt/format.h>

#include "cli/args/exit_codes.h"
#include "cli/files/byte_streams.h"
#include "cli/files/input_array.h"
#include "cli/files/memory.h"
#include "cli/messages/file_report.h"

namespace quern::cli {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{4} << 20;

/// A digest of bytes that come in pieces; no codec and no file format knows it.
std::uint64_t add_to_digest(std::uint64_t digest, std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t byte : bytes) digest = (digest ^ byte) * UINT64_C(0x100000001B3);  // FNV-1a
  return digest;
}
constexpr std::uint64_t kEmptyDigest = UINT64_C(0xCBF29CE484222325);

std::set<std::string> attribute_names(const io::ArrayMeta& meta) {
  std::set<std::string> out;
  const Json notes = Json::parse(meta.attributes_json, nullptr, false);
  if (!notes.is_object() || !notes.contains("attributes")) return out;
  for (const Json& attribute : notes["attributes"]) out.insert(attribute.value("name", std::string()));
  return out;
}

}  // namespace

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

void ArrayOutput::define(const std::vector<io::ArrayToWrite>& arrays) {
  if (kind_ != io::FileKind::netcdf) return;
  const ScopedUmask mask(~mode_);
  std::string detail;
  const Status status = io::define_arrays(file_->temporary_path(), kind_, arrays, detail);
  if (!status.ok()) fail_with_final_name(status, std::move(detail));
  defined_ = true;
}

void ArrayOutput::fail_with_final_name(const Status& status, std::string detail) const {
  const std::size_t at = detail.find(file_->temporary_path());
  if (at != std::string::npos) detail.replace(at, file_->temporary_path().size(), path_);
  fail_file(status, detail);
}

void ArrayOutput::begin(const io::ArrayMeta& meta, const std::string& dataset) {
  if (kind_ == io::FileKind::raw) return;
  const ScopedUmask mask(~mode_);
  std::string detail;
  auto writer = io::create_writer(file_->temporary_path(), kind_, meta, dataset, detail, defined_);
  if (!writer.ok()) fail_with_final_name(writer.status(), std::move(detail));
  writer_ = std::move(writer).value();
  written_.push_back({meta, dataset, kEmptyDigest});
}

void ArrayOutput::write(std::span<const std::uint8_t> bytes) {
  bytes_ += bytes.size();
  if (!writer_) {
    if (!write_all(file_ ? file_->descriptor() : STDOUT_FILENO, bytes)) fail_errno(path_, "write");
    return;
  }
  if (is_library_file()) written_.back().digest = add_to_digest(written_.back().digest, bytes);
  const Status status = writer_->write(bytes);
  if (!status.ok()) fail_file(status, path_ + ": " + status.text());
}

void ArrayOutput::end() {
  if (!writer_) return;
  const Status status = writer_->finish();
  writer_.reset();
  if (!status.ok()) fail_file(status, path_ + ": " + status.text());
}

void ArrayOutput::check_written(const Written& written) const {
  io::OpenOptions options;
  options.dataset = written.dataset;
  std::string detail;
  auto reader = io::open_reader(file_->temporary_path(), kind_, options, detail);
  if (!reader.ok()) fail_with_final_name(reader.status(), std::move(detail));
  const io::ArrayMeta& meta = (*reader)->meta();
  const auto differs = [&](const char* what) {
    fail(Exit::io, fmt::format("{}: {} of {} came back different when the file was read again, and the file was not "
                               "kept; please report this",
                               path_, what, written.dataset));
  };
  if (meta.dtype != written.meta.dtype || !(meta.shape == written.meta.shape)) differs("type or shape");
  const auto found = attribute_names(meta);
  for (const std::string& name : attribute_names(written.meta))
    if (!found.contains(name) && name != "_FillValue") differs(("the attribute " + name).c_str());
  std::uint64_t digest = kEmptyDigest;
  Buffer block(kBlockBytes, path_);
  while (true) {
    auto count = (*reader)->read({block.data(), block.size()});
    if (!count.ok()) fail_file(count.status(), path_ + ": " + count.status().text());
    if (*count == 0) break;
    digest = add_to_digest(digest, {block.data(), *count});
  }
  if (digest != written.digest) differs("the values");
}

void ArrayOutput::commit() {
  if (is_library_file())
    for (const Written& written : written_) check_written(written);
  if (file_) file_->commit();
}

}  // namespace quern::cli
