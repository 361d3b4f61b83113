// Kinds of files by name, and the one barrier between this folder and its callers: no exception passes it.
#include <quern/io.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "libcompress/io/error.h"
#include "libcompress/io/file_kinds.h"
#include "libcompress/io/file_notes.h"

namespace quern::io {
namespace {

struct Extension {
  std::string_view text;
  FileKind kind;
};
constexpr std::array<Extension, 7> kExtensions{{{".npy", FileKind::npy},
                                                {".h5", FileKind::hdf5},
                                                {".hdf5", FileKind::hdf5},
                                                {".he5", FileKind::hdf5},
                                                {".nc", FileKind::netcdf},
                                                {".nc4", FileKind::netcdf},
                                                {".cdf", FileKind::netcdf}}};

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

Result<std::unique_ptr<ArrayReader>> open_kind(const std::string& path, FileKind kind, const OpenOptions& options,
                                               std::string& detail) {
  switch (kind) {
    case FileKind::raw: return open_raw(path, options, detail);
    case FileKind::npy: return open_npy(path, options, detail);
#ifdef QUERN_HAVE_HDF5
    case FileKind::hdf5: return open_hdf5(path, options, detail);
#endif
#ifdef QUERN_HAVE_NETCDF
    case FileKind::netcdf: return open_netcdf(path, options, detail);
#endif
    default: return not_built(path, kind, detail);
  }
}

Result<std::vector<std::string>> list_kind(const std::string& path, FileKind kind, std::string& detail) {
  switch (kind) {
    case FileKind::raw:
    case FileKind::npy: return std::vector<std::string>{std::string()};
#ifdef QUERN_HAVE_HDF5
    case FileKind::hdf5: return list_hdf5(path, detail);
#endif
#ifdef QUERN_HAVE_NETCDF
    case FileKind::netcdf: return list_netcdf(path, detail);
#endif
    default: return not_built(path, kind, detail);
  }
}

Result<std::unique_ptr<ArrayWriter>> create_kind(const std::string& path, FileKind kind, const ArrayMeta& meta,
                                                 [[maybe_unused]] const std::string& dataset, std::string& detail) {
  switch (kind) {
    case FileKind::raw: return create_raw(path, meta, detail);
    case FileKind::npy: return create_npy(path, meta, detail);
#ifdef QUERN_HAVE_HDF5
    case FileKind::hdf5: return create_hdf5(path, meta, dataset, detail);
#endif
#ifdef QUERN_HAVE_NETCDF
    case FileKind::netcdf: return create_netcdf(path, meta, dataset, detail);
#endif
    default: return not_built(path, kind, detail);
  }
}

}  // namespace

FileKind file_kind(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::size_t dot = path.find_last_of('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return FileKind::raw;
  std::string extension = path.substr(dot);
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Extension& known : kExtensions)
    if (extension == known.text) return known.kind;
  return FileKind::raw;
}

std::vector<FileLibrary> file_libraries() {
  std::vector<FileLibrary> out;
#ifdef QUERN_HAVE_HDF5
  out.push_back({"HDF5", hdf5_version()});
#endif
#ifdef QUERN_HAVE_NETCDF
  out.push_back({"netCDF", netcdf_version()});
#endif
  return out;
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

Status check_asked(const std::string& path, const ArrayMeta& meta, const OpenOptions& options, std::string& detail) {
  if (options.skip_bytes != 0 || options.big_endian || options.column_major)
    return fail(detail, StatusCode::invalid_argument,
                "Skipped bytes, byte order and axis order are read from " + shown(path) +
                    " itself; leave these options out, they are for raw files.");
  if (options.dtype && *options.dtype != meta.dtype)
    return fail(detail, StatusCode::invalid_argument,
                shown(path) + " holds " + dtype_name(meta.dtype) + ", not " + dtype_name(*options.dtype) +
                    "; leave the type out, the file knows it.");
  if (options.shape && !(*options.shape == meta.shape))
    return fail(detail, StatusCode::invalid_shape,
                shown(path) + " holds an array of shape " + meta.shape.text() + ", not " + options.shape->text() +
                    "; leave the shape out, the file knows it.");
  return {};
}

Result<std::string> only_name(const std::string& path, const std::vector<std::string>& names, std::string& detail) {
  constexpr std::size_t kShown = 12;
  if (names.size() == 1) return names.front();
  if (names.empty())
    return fail(detail, StatusCode::invalid_argument, path + " holds no numeric array that quern can read.");
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) list += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kShown) list += ", ...";
  return fail(detail, StatusCode::invalid_argument,
              path + " holds " + std::to_string(names.size()) + " arrays: " + list + "; name the one you mean.");
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
                                                   const std::string& dataset, std::string& detail) {
  return guarded(detail, [&]() -> Result<std::unique_ptr<ArrayWriter>> {
    QUERN_ASSIGN_OR_RETURN(auto writer, create_kind(path, kind, meta, dataset, detail));
    return std::unique_ptr<ArrayWriter>(std::make_unique<GuardedWriter>(std::move(writer)));
  });
}

}  // namespace quern::io
