// Datasets' values, bounds and codecs for quern h5: what it asks of the library itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/args/args.h"
#include "cli/files/input_array.h"

namespace quern::cli {

/// Opens one dataset of an HDF5 file; false and the reason where it cannot be read.
bool open_dataset(const std::string& path, const std::string& name, InputArray& out, std::string& why);

/// A bound in physical units as one of the dataset's stored numbers (io::stored_bound); false and the reason where it
/// cannot hold.
bool bound_in_file_units(const ErrorBound& asked, const InputArray& array, ErrorBound& out, std::string& why);

/// What an array is expected to take at a PSNR.
struct ExpectedSize {
  double psnr_db = 0;
  double bytes = 0;
};

/// Of the codec that is expected to do best, from the lowest PSNR to the highest; nothing of arrays that the estimator
/// does not know. Reads the values.
std::vector<ExpectedSize> expected_sizes(InputArray& array, const CodecArgs& codec, const RunArgs& run);

/// The bound that --digits or --information gives the values of a dataset; false with a reason: it has none.
bool precise_bound(const PrecisionArgs& asked, InputArray& array, const RunArgs& run, ErrorBound& out,
                   std::string& why);
/// Turns a bound relative to the range, a PSNR or a ratio of the whole dataset into one on each value: lossless, abs or
/// pwrel. Reads the values for these three alone. For a PSNR, `codec` becomes what reaches it with the bound. Throws
/// CliError.
ErrorBound bound_of_values(const ErrorBound& stored, CodecArgs& codec, InputArray& array, const RunArgs& run);

/// The number of a codec; nothing when there is none of that name.
std::optional<std::uint32_t> codec_id(const std::string& name);
/// The name of a codec by its number; "auto" for 0.
std::string codec_name(std::uint32_t id);

/// What a packed piece of a dataset is like, by code that shares nothing with the encoder.
struct PieceCheck {
  std::uint64_t violations = 0;
  double max_error = 0;
  double squares = 0;  ///< sum of squared errors of valid values
  std::uint64_t valid = 0;
  double min = 0, max = 0;
};

/// Checks `elems` elements in the machine's byte order against a bound in stored numbers. Throws CliError.
PieceCheck check_piece(const void* original, const void* packed, DType dtype, std::uint64_t elems,
                       const ErrorBound& bound, const Vector<std::uint64_t>& fill_bits, const RunArgs& run);

}  // namespace quern::cli
