// Where decoded arrays go: standard output, a raw file, .npy, or arrays in one .h5 or .nc file. The file gets its name
// when everything is in it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <quern/io.h>

#include "cli/files/safe_file.h"

namespace quern::cli {

class ArrayOutput {
 public:
  /// `path` "-" is standard output, raw. Throws CliError.
  ArrayOutput(const std::string& path, bool force, mode_t mode);

  /// As that of SafeFile.
  void take_time_of(const std::string& input) {
    if (file_) file_->take_time_of(input);
  }
  /// Tells which arrays are going to be written; before the first begin(), for files of several arrays.
  void define(const std::vector<io::ArrayToWrite>& arrays);
  /// Begins one array; only .h5 and .nc files take more than one.
  void begin(const io::ArrayMeta& meta, const std::string& dataset);
  void write(std::span<const std::uint8_t> bytes);
  /// Ends the array.
  void end();
  /// Opens an HDF5 or netCDF file again, compares all that is in it with what was written, and gives it its name.
  void commit();

  std::uint64_t bytes() const { return bytes_; }

 private:
  /// One array as it must be read again.
  struct Written {
    io::ArrayMeta meta;
    std::string dataset;
    std::uint64_t digest = 0;
  };
  /// The library speaks of the temporary name, the user knows the final one.
  [[noreturn]] void fail_with_final_name(const Status& status, std::string detail) const;
  void check_written(const Written& written) const;

  bool is_library_file() const { return kind_ == io::FileKind::hdf5 || kind_ == io::FileKind::netcdf; }

  std::string path_;
  io::FileKind kind_ = io::FileKind::raw;
  mode_t mode_;
  std::optional<SafeFile> file_;
  std::unique_ptr<io::ArrayWriter> writer_;
  std::uint64_t bytes_ = 0;
  bool defined_ = false;
  std::vector<Written> written_;
};

}  // namespace quern::cli
