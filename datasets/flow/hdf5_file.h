// One time step as an HDF5 file. Compiled in only when HDF5 was found; output.cpp is its one caller.
#pragma once

#include <string>

#include "datasets/flow/output.h"

namespace quern::flow {

/// Writes density, velocity_*, pressure and energy as datasets (z, y, x) of the chosen type, each with the attributes
/// units, long_name, time and step; the file has setup, gamma, spacing, time and step. Neither syncs nor renames.
/// `values` is scratch of one field.
Status write_hdf5(const std::string& path, const Solver& solver, const OutputOptions& options, std::span<double> values,
                  std::string& detail);

}  // namespace quern::flow
