// What a file says of an array beyond its elements: attributes, names of dimensions, how it is stored. It travels in
// ArrayMeta::attributes_json; README.md describes that JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <quern/io.h>

namespace quern::io {

/// A named value: numbers of one type, or texts.
struct Attribute {
  enum class Type { number, chars, strings };  ///< chars: fixed-size text; strings: texts of variable length

  std::string name;
  Type type = Type::number;
  DType dtype = DType::f64;          ///< of numbers
  std::vector<std::uint64_t> shape;  ///< empty: one value
  std::vector<std::uint64_t> bits;   ///< numbers as patterns of dtype
  std::vector<std::string> texts;    ///< chars and strings; any bytes
  bool utf8 = false;                 ///< texts: the file declares UTF-8 rather than ASCII

  std::size_t count() const { return type == Type::number ? bits.size() : texts.size(); }
};

struct Dimension {
  std::string name;
  std::uint64_t size = 0;
  bool unlimited = false;
};

struct FileNotes {
  std::string kind;     ///< "npy", "hdf5", "netcdf"; empty when nothing is known
  std::string dataset;  ///< name of the array in its file
  bool fortran_order = false;
  std::vector<std::string> complex_names;  ///< HDF5: names of the real and the imaginary member
  std::vector<Dimension> dimensions;
  std::vector<std::uint64_t> chunks;
  std::vector<std::optional<std::uint64_t>> max_shape;  ///< HDF5: nothing where an axis is unlimited
  std::optional<Attribute> fill_value;                  ///< HDF5: the one set when the dataset was created
  std::vector<Attribute> attributes;
  std::vector<Attribute> file_attributes;  ///< netCDF: the global ones
  std::vector<std::string> skipped;        ///< attributes of kinds that cannot be carried
};

/// The largest attribute that is carried, in bytes; larger ones are named in `skipped`.
inline constexpr std::uint64_t kMaxAttributeBytes = UINT64_C(1) << 20;

std::string to_json(const FileNotes& notes);
/// Reads what to_json wrote; an empty text gives empty notes. The text may come from a stream somebody else made, so
/// everything is checked. Fails with invalid_argument.
Result<FileNotes> notes_from_json(const std::string& json, std::string& detail);

/// The attribute of that name, or null.
const Attribute* find_attribute(const std::vector<Attribute>& attributes, const std::string& name);
Attribute number_attribute(std::string name, DType dtype, std::uint64_t bits);

/// Adds every value of _FillValue and missing_value, as patterns of `meta.dtype`, once each.
void add_fill_attributes(const std::vector<Attribute>& attributes, ArrayMeta& meta);
void add_fill_bits(std::uint64_t bits, ArrayMeta& meta);

/// The attributes a writer gives the array: those of the notes, or, when the array does not come from a file that has
/// attributes, _FillValue, scale_factor and add_offset made from `meta`.
std::vector<Attribute> attributes_to_write(const FileNotes& notes, const ArrayMeta& meta);

/// add_step_axis of <quern/io.h> for notes and shape.
void add_step_axis(FileNotes& notes, ArrayMeta& meta, std::uint64_t steps);

/// True when the array is complex and its last axis has both parts.
bool has_complex_axis(const ArrayMeta& meta);

}  // namespace quern::io
