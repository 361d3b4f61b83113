// What the netCDF reader and writer share: an open file, element types, attributes, names with groups.
#pragma once

#include <netcdf.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <quern/io.h>

#include "libcompress/io/file_notes.h"

namespace quern::io {

/// Owns an open netCDF file. Move-only.
class NcFile {
 public:
  explicit NcFile(int id) : id_(id) {}
  NcFile(NcFile&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  NcFile& operator=(NcFile&&) = delete;
  ~NcFile() { close(); }
  int id() const { return id_; }
  /// Closes now and returns netCDF's result; later calls do nothing.
  int close() {
    const int id = std::exchange(id_, -1);
    return id < 0 ? NC_NOERR : nc_close(id);
  }

 private:
  int id_;
};

/// Must precede every other call to netCDF, which stands on HDF5 (see h5_prepare).
void nc_prepare();

/// The element type of a netCDF type; nothing for texts and types of the user.
std::optional<DType> nc_element(nc_type type);
/// The netCDF type of an element type; nothing for f16 and bf16.
std::optional<nc_type> nc_type_of(DType dtype);

/// Reads all attributes of a variable (or of the group, with NC_GLOBAL).
void nc_read_attributes(int group, int variable, std::vector<Attribute>& out, std::vector<std::string>& skipped);
/// Writes one attribute; returns netCDF's result. f16 and bf16 numbers are written as f32.
int nc_write_attribute(int group, int variable, const Attribute& attribute);

/// "/g/h/T" or "T" as the groups ("g/h") and the name of the variable ("T").
struct NcName {
  std::string group;
  std::string variable;
};
NcName nc_split(const std::string& path);

}  // namespace quern::io
