// What attributes say about values by the conventions of netCDF and CF: packing, missing data, valid values, flags,
// unsigned numbers in signed types. Readers of HDF5 and netCDF share it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <quern/io.h>

#include "libcompress/io/file_notes.h"

namespace quern::io {

/// Reads scale_factor and add_offset, valid_min, valid_max and valid_range, flag_values and flag_masks into `meta`,
/// whose dtype is set. Attributes of valid values are in the units of the stored numbers, as CF says.
void read_conventions(const std::vector<Attribute>& attributes, ArrayMeta& meta);

/// One variable's attribute that names other variables.
struct Reference {
  std::string variable;
  std::string attribute;
  std::string text;
};
/// Attributes by which CF variables name what belongs to them: bounds, coordinates, ...
inline constexpr std::array kReferringAttributes{"bounds",       "coordinates", "cell_measures",      "formula_terms",
                                                 "grid_mapping", "climatology", "ancillary_variables"};
/// What a variable is beside a field, for ArrayMeta::role.
std::string role_of(const std::string& name, bool is_coordinate, const std::vector<Attribute>& attributes,
                    const std::vector<Reference>& references);

/// True when the attributes say that a signed type holds unsigned values (_Unsigned = "true").
bool says_unsigned(const std::vector<Attribute>& attributes);
/// The type of the same width with or without sign.
DType with_sign(DType dtype, bool is_signed);

/// What netCDF writes where nobody wrote a value, as a pattern of the type. Nothing for bytes, whose default is an
/// ordinary value, and for types netCDF does not have.
std::optional<std::uint64_t> netcdf_default_fill(DType dtype);

}  // namespace quern::io
