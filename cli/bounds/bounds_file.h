// Files of lines "variable kind value", one bound for each variable of an HDF5 or netCDF file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/args/values.h"

namespace quern::cli {

/// Reads lines such as "temperature abs 0.01" and "mask lossless"; "#" begins a comment. Throws CliError (usage) naming
/// `name` and the line.
std::vector<VariableBound> parse_bounds(std::string_view text, const std::string& name);

/// The same from a file. Throws CliError (io) when it cannot be read.
std::vector<VariableBound> read_bounds_file(const std::string& path);

}  // namespace quern::cli
