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
#include <quern/bound.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern::io {

enum class FileKind { raw, npy, hdf5, netcdf };

/// By extension: .npy; .h5 .hdf5 .he5; .nc .nc4 .cdf; anything else is raw.
FileKind file_kind(const std::string& path);
/// Kind of a file to be read: by extension, else by its first bytes. Fails for files that hold no plain array (quern
/// streams, zip archives, safetensors); `detail` receives a sentence that says what to do.
Result<FileKind> input_kind(const std::string& path, std::string& detail);
/// Whether a raw file's name tells both type and shape: NAME_d0xd1x..xdn.TYPE, as in vx_50x100x100.f32.
bool name_tells_array(const std::string& path);
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
  double scale_factor = 1.0;        ///< packed: physical = stored * scale_factor + add_offset
  double add_offset = 0.0;
  bool packed = false;
  /// valid_min, valid_max or valid_range, in the units of the stored numbers. Values outside are no fill values, but no
  /// range includes them.
  std::optional<double> valid_min, valid_max;
  /// What CF says it is beside a field, as a clause: "it is a coordinate variable", "time names it in bounds"; empty
  /// for fields.
  std::string role;
  bool holds_flags = false;         ///< CF flag_values or flag_masks: the numbers are codes, not quantities
  bool unsigned_in_signed = false;  ///< dtype is unsigned, the file's type is signed (_Unsigned = "true")
  bool is_complex = false;          ///< last axis of extent 2 holds real and imaginary parts
  std::string attributes_json;      ///< attributes, dimension names and file kind, enough to write the variable again
};

/// A bound in physical units as one of stored numbers. For a packed array `abs` is divided by |scale_factor| and
/// rounded down, for integers to an integer: |scale_factor| * result <= bound holds exactly, and add_offset plays no
/// part. `rel`, `psnr` and `ratio` do not depend on the scale. Fails where the bound cannot hold for physical values;
/// `detail` receives the reason as a sentence about "it".
Result<ErrorBound> stored_bound(const ErrorBound& bound, const ArrayMeta& meta, std::string& detail);
/// Turns a range of physical values into one of stored numbers that is no wider.
void stored_range(const ArrayMeta& meta, double& min, double& max);

/// The text of one of the array's attributes, such as "units"; empty when there is none of that name.
std::string text_attribute(const ArrayMeta& meta, const std::string& name);

struct OpenOptions {
  std::optional<DType> dtype;  ///< raw needs it; other kinds check it when given
  std::optional<Shape> shape;  ///< raw needs it unless the file name tells (NAME_d0xd1x..xdn.TYPE)
  std::string dataset;         ///< HDF5 path or netCDF variable; empty: the only array of the file
  std::uint64_t skip_bytes = 0;
  bool big_endian = false;
  bool column_major = false;  ///< raw: the shape is given as the program declares it, first axis fastest
  bool find_role = true;      ///< HDF5: ArrayMeta::role is looked for, in the attributes of all datasets of the file
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

/// An array that is to be written, and its name in the file.
struct ArrayToWrite {
  ArrayMeta meta;
  std::string dataset;
};
/// Puts another axis before those of `meta`, for time steps that follow one another: its names of dimensions and what
/// it says about storage learn of it. A first axis of extent 1 that may grow becomes that axis.
void add_step_axis(ArrayMeta& meta, std::uint64_t steps);
/// Defines all arrays of a new netCDF file in one go, coordinate variables first, to be written by create_writer
/// afterwards: what is added to a file later moves what is in it. Other kinds need nothing of the sort.
Status define_arrays(const std::string& path, FileKind kind, const std::vector<ArrayToWrite>& arrays,
                     std::string& detail);

/// Creates `path` (the caller renames it into place). HDF5 and netCDF files get the attributes of `meta` back.
/// `dataset` names the array in the file; an existing HDF5 or netCDF file made by an earlier call may receive further
/// arrays. `defined`: define_arrays has made the file and the array in it. Path "-" is standard output (raw and .npy).
Result<std::unique_ptr<ArrayWriter>> create_writer(const std::string& path, FileKind kind, const ArrayMeta& meta,
                                                   const std::string& dataset, std::string& detail,
                                                   bool defined = false);

}  // namespace quern::io
