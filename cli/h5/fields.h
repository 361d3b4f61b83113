// Which datasets of a file are fields by the conventions of netCDF and CF, and which say where, when and how reliable
// fields are. The latter stay exact unless the user names them.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "cli/h5/copy/tree.h"

namespace quern::cli {

/// Why a dataset stays as it is; not an error.
struct LeftAlone {
  std::string reason;
  std::string group = "that the filter cannot take";  ///< a few words for a count of those left alone
};

class H5FieldRules {
 public:
  /// Reads the attributes of all objects. Throws CliError (io).
  H5FieldRules(hid_t file, const H5Tree& tree);

  /// Nothing for a field.
  std::optional<LeftAlone> why_no_field(std::size_t object, hid_t dataset) const;

 private:
  std::unordered_map<std::size_t, std::string> named_;  ///< by other objects: "the attribute bounds of /time"
};

/// True for units of places and times, such as degrees_north and "days since 1850-01-01".
bool is_coordinate_unit(const std::string& units);

}  // namespace quern::cli
