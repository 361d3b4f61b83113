// Writes the fields of a solver at one time step: raw files, one for each field, and an HDF5 file that holds them all.
// A file appears under its final name complete or not at all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "datasets/flow/solver.h"

namespace quern::flow {

enum class ElementType { f32, f64 };
enum class OutputFormat { raw, hdf5, both };

struct OutputOptions {
  std::string directory;  ///< exists
  OutputFormat format = OutputFormat::raw;
  ElementType type = ElementType::f32;
  std::string_view setup;  ///< name, kept as an attribute in HDF5
};

/// What has been written so far.
struct Written {
  std::vector<std::string> files;
  std::uint64_t bytes = 0;
  double seconds = 0.0;  ///< spent in write_fields
};

/// True when this build writes HDF5.
bool has_hdf5();

/// "density_t0010_64x64x128.f32": what, the step with at least four digits, the shape slowest axis first, the ending.
std::string output_name(std::string_view what, std::uint64_t step, const Grid& grid, std::string_view ending);

/// Writes all fields of the current step. Adds to `written` what is complete. `detail` receives a sentence that names
/// the file when this fails with io_error, unsupported (HDF5 in a build without it) or out_of_memory.
Status write_fields(const Solver& solver, const OutputOptions& options, Written& written, std::string& detail);

}  // namespace quern::flow
