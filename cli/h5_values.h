// Datasets' values and codecs for quern h5.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/args.h"
#include "cli/input_array.h"

namespace quern::cli {

/// Opens one dataset of an HDF5 file; false and the reason where it cannot be read.
bool open_dataset(const std::string& path, const std::string& name, InputArray& out, std::string& why);

/// A bound in physical units as one of the dataset's stored numbers (io::stored_bound); false and the reason where it
/// cannot hold.
bool bound_in_file_units(const ErrorBound& asked, const InputArray& array, ErrorBound& out, std::string& why);

/// A relative bound times the range of the dataset's valid values; lossless where there is no range.
ErrorBound absolute_bound(const ErrorBound& asked, InputArray& array, const RunArgs& run);

/// The number of a codec; nothing when there is none of that name.
std::optional<std::uint32_t> codec_id(const std::string& name);

}  // namespace quern::cli
