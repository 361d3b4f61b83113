// Kinds of files by name, and the one barrier between this folder and its callers: no exception passes it.
#include <quern/io.h>

#include <exception>
#include <new>
#include <utility>

#include "libcompress/io/error.h"
#include "libcompress/io/file_kinds.h"
#include "libcompress/io/file_notes.h"
#include "libcompress/io/library/library_files.h"

#if defined(QUERN_HAVE_HDF5) || defined(QUERN_HAVE_NETCDF)
#define QUERN_HAVE_LIBRARY_FILES
#endif

namespace quern::io {
namespace {

const char* kind_name(FileKind kind) {
  switch (kind) {
    case FileKind::raw: return "raw";
    case FileKind::npy: return "npy";
    case FileKind::hdf5: return "HDF5";
    case FileKind::netcdf: return "netCDF";
  }
  return "unknown";
}

Status not_built(const std::string& path, FileKind kind, std::string& detail) {
  const std::string name = kind_name(kind);
  const char* package = kind == FileKind::hdf5 ? "libhdf5-dev" : "libnetcdf-dev";
  return fail(detail, StatusCode::unsupported,
              path + " is a " + name + " file, and this build of quern has no " + name + ": install " + package +
                  ", configure again with QUERN_HDF5=ON and rebuild.");
}

// Turns what the standard library and the JSON parser throw into a Status.
template <class Call>
auto guarded(std::string& detail, Call&& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "memory ran out while a file was opened");
  } catch (const std::exception& error) {
    return fail(detail, StatusCode::internal, std::string("An unexpected error: ") + error.what());
  }
}

template <class Call>
auto guarded(Call&& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "memory ran out while a file was read or written");
  } catch (const std::exception&) {
    return Status(StatusCode::internal, "an unexpected error while a file was read or written");
  }
}

class GuardedReader final : public ArrayReader {
 public:
  explicit GuardedReader(std::unique_ptr<ArrayReader> inner) : inner_(std::move(inner)) {}
  const ArrayMeta& meta() const override { return inner_->meta(); }
  Result<std::size_t> read(std::span<std::uint8_t> out) override {
    return guarded([&] { return inner_->read(out); });
  }
  const void* mapped() const override { return inner_->mapped(); }

 private:
  std::unique_ptr<ArrayReader> inner_;
};

class GuardedWriter final : public ArrayWriter {
 public:
  explicit GuardedWriter(std::unique_ptr<ArrayWriter> inner) : inner_(std::move(inner)) {}
  Status write(std::span<const std::uint8_t> bytes) override {
    return guarded([&] { return inner_->write(bytes); });
  }
  Status finish() override {
    return guarded([&] { return inner_->finish(); });
  }

 private:
  std::unique_ptr<ArrayWriter> inner_;
};

// What the libraries do, with `use(files)`; or why they cannot.
template <class Use>
auto with_library(const std::string& path, [[maybe_unused]] FileKind kind, std::string& detail,
                  [[maybe_unused]] const Use& use) -> decltype(use(std::declval<const LibraryFiles&>())) {
#ifdef QUERN_HAVE_LIBRARY_FILES
  if (is_available(kind)) {
    std::string why;
    const LibraryFiles* files = library_files(why);
    if (files != nullptr) return use(*files);
    return fail(detail, StatusCode::unsupported, path + " is a " + kind_name(kind) + " file, and " + why + ".");
  }
#endif
  return not_built(path, kind, detail);
}

Result<std::unique_ptr<ArrayReader>> open_kind(const std::string& path, FileKind kind, const OpenOptions& options,
                                               std::string& detail) {
  if (kind == FileKind::raw) return open_raw(path, options, detail);
  if (kind == FileKind::npy) return open_npy(path, options, detail);
  return with_library(path, kind, detail,
                      [&](const LibraryFiles& files) { return files.open(path, kind, options, detail); });
}

Result<std::vector<std::string>> list_kind(const std::string& path, FileKind kind, std::string& detail) {
  if (kind == FileKind::raw || kind == FileKind::npy) return std::vector<std::string>{std::string()};
  return with_library(path, kind, detail, [&](const LibraryFiles& files) { return files.list(path, kind, detail); });
}

Result<std::unique_ptr<ArrayWriter>> create_kind(const std::string& path, FileKind kind, const ArrayMeta& meta,
                                                 const std::string& dataset, std::string& detail, bool defined) {
  if (kind == FileKind::raw) return create_raw(path, meta, detail);
  if (kind == FileKind::npy) return create_npy(path, meta, detail);
  return with_library(path, kind, detail, [&](const LibraryFiles& files) {
    return files.create(path, kind, meta, dataset, detail, defined);
  });
}

}  // namespace

std::vector<FileLibrary> file_libraries() {
#ifdef QUERN_HAVE_LIBRARY_FILES
  std::string why;
  const LibraryFiles* files = library_files(why);
  if (files != nullptr) return files->versions();
#endif
  return {};
}

std::string text_attribute(const ArrayMeta& meta, const std::string& name) {
  std::string detail;
  const auto notes =
      guarded(detail, [&]() -> Result<FileNotes> { return notes_from_json(meta.attributes_json, detail); });
  if (!notes.ok()) return "";
  const Attribute* found = find_attribute(notes->attributes, name);
  return found == nullptr || found->texts.empty() ? "" : found->texts.front();
}

bool is_available(FileKind kind) {
  switch (kind) {
    case FileKind::raw:
    case FileKind::npy: return true;
    case FileKind::hdf5:
#ifdef QUERN_HAVE_HDF5
      return true;
#else
      return false;
#endif
    case FileKind::netcdf:
#ifdef QUERN_HAVE_NETCDF
      return true;
#else
      return false;
#endif
  }
  return false;
}

Result<std::unique_ptr<ArrayReader>> open_reader(const std::string& path, FileKind kind, const OpenOptions& options,
                                                 std::string& detail) {
  return guarded(detail, [&]() -> Result<std::unique_ptr<ArrayReader>> {
    QUERN_ASSIGN_OR_RETURN(auto reader, open_kind(path, kind, options, detail));
    return std::unique_ptr<ArrayReader>(std::make_unique<GuardedReader>(std::move(reader)));
  });
}

Result<std::vector<std::string>> list_arrays(const std::string& path, FileKind kind, std::string& detail) {
  return guarded(detail, [&] { return list_kind(path, kind, detail); });
}

Result<std::unique_ptr<ArrayWriter>> create_writer(const std::string& path, FileKind kind, const ArrayMeta& meta,
                                                   const std::string& dataset, std::string& detail, bool defined) {
  return guarded(detail, [&]() -> Result<std::unique_ptr<ArrayWriter>> {
    QUERN_ASSIGN_OR_RETURN(auto writer, create_kind(path, kind, meta, dataset, detail, defined));
    return std::unique_ptr<ArrayWriter>(std::make_unique<GuardedWriter>(std::move(writer)));
  });
}

Status define_arrays(const std::string& path, FileKind kind, const std::vector<ArrayToWrite>& arrays,
                     std::string& detail) {
  if (kind != FileKind::netcdf) return {};
  return guarded(detail, [&] {
    return with_library(path, kind, detail,
                        [&](const LibraryFiles& files) { return files.define(path, kind, arrays, detail); });
  });
}

void add_step_axis(ArrayMeta& meta, std::uint64_t steps) {
  std::string detail;
  auto notes = guarded(detail, [&]() -> Result<FileNotes> { return notes_from_json(meta.attributes_json, detail); });
  if (!notes.ok()) return;
  add_step_axis(*notes, meta, steps);
  if (!meta.attributes_json.empty()) meta.attributes_json = to_json(*notes);
}

}  // namespace quern::io
