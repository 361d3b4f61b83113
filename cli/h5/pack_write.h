// quern h5 pack, second and third step: writes a packed dataset, and checks it against the original.
#pragma once

#include <hdf5.h>

#include <cstdint>

#include "cli/args/args.h"
#include "cli/h5/file.h"
#include "cli/h5/pack_plan.h"

namespace quern::cli {

/// Reports bytes of values that were worked on.
using BytesDone = std::function<void(std::uint64_t bytes)>;

/// Bytes of a dataset's values, not packed.
std::uint64_t h5_value_bytes(hid_t dataset);

/// Makes a dataset in `file`, without a link, that holds the values of `from` packed. Chunks are compressed side by
/// side on args.run.threads threads, box after box of a bounded size. Throws LeftAlone when it would not be smaller
/// than `from` is, CliError when anything fails.
H5Id write_packed(hid_t from, hid_t file, hid_t type, const PackJob& job, const H5Args& args, const BytesDone& done);

/// The same until the PSNR or the ratio that job.asked may be is there: the bound that was found for the dataset as a
/// whole is too wide, or too narrow, for chunks that are compressed one by one. Changes the job's bound.
H5Id write_to_target(hid_t from, hid_t file, hid_t type, PackJob& job, const H5Args& args, const BytesDone& done);

struct PackedQuality {
  double max_error = 0;           ///< in physical units
  std::optional<double> psnr_db;  ///< nothing when no value has an error
};

/// Reads both datasets through HDF5. Throws CliError (bound) when a value misses job.stored.
PackedQuality check_packed(hid_t from, hid_t to, const PackJob& job, const H5Args& args, const BytesDone& done);

}  // namespace quern::cli
