// What each kind of file offers to the dispatcher in io.cpp. Kinds that are not built have no definitions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <quern/io.h>

namespace quern::io {

/// What a raw file's name says: NAME_d0xd1x..xdn.TYPE; either half may be missing.
struct NameFacts {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
};
NameFacts facts_from_name(const std::string& path);

Result<std::unique_ptr<ArrayReader>> open_raw(const std::string& path, const OpenOptions& options, std::string& detail);
Result<std::unique_ptr<ArrayReader>> open_npy(const std::string& path, const OpenOptions& options, std::string& detail);
Result<std::unique_ptr<ArrayReader>> open_hdf5(const std::string& path, const OpenOptions& options,
                                               std::string& detail);
Result<std::unique_ptr<ArrayReader>> open_netcdf(const std::string& path, const OpenOptions& options,
                                                 std::string& detail);

Result<std::vector<std::string>> list_hdf5(const std::string& path, std::string& detail);
Result<std::vector<std::string>> list_netcdf(const std::string& path, std::string& detail);

Result<std::unique_ptr<ArrayWriter>> create_raw(const std::string& path, const ArrayMeta& meta, std::string& detail);
Result<std::unique_ptr<ArrayWriter>> create_npy(const std::string& path, const ArrayMeta& meta, std::string& detail);
Result<std::unique_ptr<ArrayWriter>> create_hdf5(const std::string& path, const ArrayMeta& meta,
                                                 const std::string& dataset, std::string& detail);
Result<std::unique_ptr<ArrayWriter>> create_netcdf(const std::string& path, const ArrayMeta& meta,
                                                   const std::string& dataset, std::string& detail, bool defined);
Status define_netcdf(const std::string& path, const std::vector<ArrayToWrite>& arrays, std::string& detail);

/// Versions of the libraries that this process runs with, as in "1.10.8".
std::string hdf5_version();
std::string netcdf_version();

/// Compares what a file says with the dtype and shape asked for, and refuses options that only raw files have.
Status check_asked(const std::string& path, const ArrayMeta& meta, const OpenOptions& options, std::string& detail);

/// The name out of `names` that is meant when none is given: the only one. Fails with a list to choose from.
Result<std::string> only_name(const std::string& path, const std::vector<std::string>& names, std::string& detail);

}  // namespace quern::io
