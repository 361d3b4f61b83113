// HDF5 and netCDF files behind a table, so that their libraries may be in a module that is loaded when one is needed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <quern/io.h>

namespace quern::io {

/// Calls for the kinds hdf5 and netcdf, with the meaning of their namesakes in <quern/io.h>. They may throw what the
/// standard library throws.
struct LibraryFiles {
  Result<std::unique_ptr<ArrayReader>> (*open)(const std::string& path, FileKind kind, const OpenOptions& options,
                                               std::string& detail);
  Result<std::vector<std::string>> (*list)(const std::string& path, FileKind kind, std::string& detail);
  Result<std::unique_ptr<ArrayWriter>> (*create)(const std::string& path, FileKind kind, const ArrayMeta& meta,
                                                 const std::string& dataset, std::string& detail, bool defined);
  Status (*define)(const std::string& path, FileKind kind, const std::vector<ArrayToWrite>& arrays,
                   std::string& detail);
  std::vector<FileLibrary> (*versions)();
};

/// The table, or null and half a sentence that says why there is none and what to do. Who links quern_io says where it
/// comes from: library_files.cpp has it with the libraries linked in, the command loads a module.
const LibraryFiles* library_files(std::string& why);

}  // namespace quern::io
