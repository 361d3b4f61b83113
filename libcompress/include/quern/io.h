// Reading and writing arrays in files: raw, .npy, HDF5 datasets, netCDF variables. Used by the command; not part of
// libquern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <quern/array.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern::io {

enum class FileKind { raw, npy, hdf5, netcdf };

/// By extension: .npy; .h5 .hdf5 .he5; .nc .nc4 .cdf; anything else is raw.
FileKind file_kind(const std::string& path);
/// True when this build can read and write that kind.
bool is_available(FileKind kind);

/// A library that reads or writes files in this build.
struct FileLibrary {
  const char* name = "";
  std::string version;
};
/// HDF5 and netCDF with their versions, as far as this build has them.
std::vector<FileLibrary> file_libraries();

/// What a file says of an array, or what is to be written.
struct ArrayMeta {
  DType dtype = DType::f32;
  Shape shape;                      ///< slowest axis first, as the bytes lie in memory
  Vector<std::uint64_t> fill_bits;  ///< from _FillValue, missing_value, HDF5 fill values that are set by the user
  double scale_factor = 1.0;        ///< packed netCDF: physical = packed * scale_factor + add_offset
  double add_offset = 0.0;
  bool packed = false;
  bool is_complex = false;      ///< last axis of extent 2 holds real and imaginary parts
  std::string attributes_json;  ///< attributes, dimension names and file kind, enough to write the variable again
};

/// The text of one of the array's attributes, such as "units"; empty when there is none of that name.
std::string text_attribute(const ArrayMeta& meta, const std::string& name);

struct OpenOptions {
  std::optional<DType> dtype;  ///< raw needs it; other kinds check it when given
  std::optional<Shape> shape;  ///< raw needs it unless the file name tells (NAME_d0xd1x..xdn.TYPE)
  std::string dataset;         ///< HDF5 path or netCDF variable; empty: the only array of the file
  std::uint64_t skip_bytes = 0;
  bool big_endian = false;
  bool column_major = false;  ///< raw: the shape is given as the program declares it, first axis fastest
};

/// One array of a file, read in order. Elements come in native byte order, C order.
class ArrayReader {
 public:
  virtual ~ArrayReader() = default;
  virtual const ArrayMeta& meta() const = 0;
  /// Whole elements; fewer bytes than asked only at the end.
  virtual Result<std::size_t> read(std::span<std::uint8_t> out) = 0;
  /// The whole array in memory when the file could be mapped as it is; else null.
  virtual const void* mapped() const = 0;
};

/// Opens one array. `detail` receives a sentence that names the file and says what to do when this fails.
/// Path "-" is standard input (raw and .npy streams).
Result<std::unique_ptr<ArrayReader>> open_reader(const std::string& path, FileKind kind, const OpenOptions& options,
                                                 std::string& detail);

/// Names of the numeric arrays of an HDF5 or netCDF file, in file order; one empty name for raw and .npy.
Result<std::vector<std::string>> list_arrays(const std::string& path, FileKind kind, std::string& detail);

/// Writes one array in order.
class ArrayWriter {
 public:
  virtual ~ArrayWriter() = default;
  virtual Status write(std::span<const std::uint8_t> bytes) = 0;
  /// Flushes and syncs; a full disk is reported here at the latest.
  virtual Status finish() = 0;
};

/// Creates `path` (the caller renames it into place). HDF5 and netCDF files get the attributes of `meta` back.
/// `dataset` names the array in the file; an existing HDF5 or netCDF file made by an earlier call may receive further
/// arrays. Path "-" is standard output (raw and .npy).
Result<std::unique_ptr<ArrayWriter>> create_writer(const std::string& path, FileKind kind, const ArrayMeta& meta,
                                                   const std::string& dataset, std::string& detail);

}  // namespace quern::io
