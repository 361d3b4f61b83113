// The table where HDF5 and netCDF are linked.
#include "libcompress/io/library/library_files.h"

#include "libcompress/io/file_kinds.h"

namespace quern::io {
namespace {

Status no_library() { return Status(StatusCode::internal, "a kind of file was asked for that is not built in"); }

Result<std::unique_ptr<ArrayReader>> open([[maybe_unused]] const std::string& path, FileKind kind,
                                          [[maybe_unused]] const OpenOptions& options,
                                          [[maybe_unused]] std::string& detail) {
  switch (kind) {
#ifdef QUERN_HAVE_HDF5
    case FileKind::hdf5: return open_hdf5(path, options, detail);
#endif
#ifdef QUERN_HAVE_NETCDF
    case FileKind::netcdf: return open_netcdf(path, options, detail);
#endif
    default: return no_library();
  }
}

Result<std::vector<std::string>> list([[maybe_unused]] const std::string& path, FileKind kind,
                                      [[maybe_unused]] std::string& detail) {
  switch (kind) {
#ifdef QUERN_HAVE_HDF5
    case FileKind::hdf5: return list_hdf5(path, detail);
#endif
#ifdef QUERN_HAVE_NETCDF
    case FileKind::netcdf: return list_netcdf(path, detail);
#endif
    default: return no_library();
  }
}

Result<std::unique_ptr<ArrayWriter>> create([[maybe_unused]] const std::string& path, FileKind kind,
                                            [[maybe_unused]] const ArrayMeta& meta,
                                            [[maybe_unused]] const std::string& dataset,
                                            [[maybe_unused]] std::string& detail, [[maybe_unused]] bool defined) {
  switch (kind) {
#ifdef QUERN_HAVE_HDF5
    case FileKind::hdf5: return create_hdf5(path, meta, dataset, detail);
#endif
#ifdef QUERN_HAVE_NETCDF
    case FileKind::netcdf: return create_netcdf(path, meta, dataset, detail, defined);
#endif
    default: return no_library();
  }
}

Status define([[maybe_unused]] const std::string& path, [[maybe_unused]] FileKind kind,
              [[maybe_unused]] const std::vector<ArrayToWrite>& arrays, [[maybe_unused]] std::string& detail) {
#ifdef QUERN_HAVE_NETCDF
  if (kind == FileKind::netcdf) return define_netcdf(path, arrays, detail);
#endif
  return {};
}

std::vector<FileLibrary> versions() {
  std::vector<FileLibrary> out;
#ifdef QUERN_HAVE_HDF5
  out.push_back({"HDF5", hdf5_version()});
#endif
#ifdef QUERN_HAVE_NETCDF
  out.push_back({"netCDF", netcdf_version()});
#endif
  return out;
}

}  // namespace

const LibraryFiles* library_files(std::string& /*why*/) {
  static constexpr LibraryFiles kFiles{open, list, create, define, versions};
  return &kFiles;
}

}  // namespace quern::io
