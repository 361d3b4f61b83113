// quern h5 pack --total-size: one PSNR for all datasets, the highest with which the file fits.
#pragma once

#include <cstdint>
#include <functional>

#include "cli/args/args.h"
#include "cli/h5/copy/output.h"

namespace quern::cli {

/// Packs the file under `how`, and keeps it where `accept` wants its bytes; returns them.
using PackOnce = std::function<std::uint64_t(const H5Args& how, const AcceptBytes& accept)>;

/// The PSNR is solved from what the estimator expects of every dataset, then measured by packing, four times at most
/// and once more where none of these filled the size. Throws CliError: the file does not fit at the lowest PSNR.
void pack_to_size(const H5Args& args, hid_t file, const H5Tree& tree, const PackOnce& pack);

}  // namespace quern::cli
