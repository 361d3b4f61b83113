// The calibration file: what real compressions gave beside what was estimated, and the correction that follows.
#pragma once

#include <cstdint>
#include <string>

#include <quern/estimate.h>

#include "cli/args/args.h"

namespace quern::cli {

/// Whether compressions go into a calibration file: where one is named, and goal, effort and settings are the default
/// ones, which estimates speak of.
inline bool records_compressions(const CompressArgs& args) {
  return !args.calibration.empty() && args.codec.is_default_search();
}

/// Throws, before anything is compressed, what record_compression would throw of the file. Makes none.
void check_calibration_file(const std::string& path);

/// Appends one compression, on a line of its own whatever a program that was killed has left. `estimate` is of the model that ships, uncorrected, for the codec and bound that were used.
/// One line is one write: several programs may share a file. Throws CliError (io), or (usage) for a file of another
/// kind.
void record_compression(const std::string& path, const Estimate& estimate, double measured_ratio);

/// Multiplies the ratios of each codec by the median of measured by estimated ratio over its last 64 compressions in the
/// file, where it has at least three by this version of the codec and the model that ships, and adds a note. A file that
/// is not there yet corrects nothing. Throws CliError (io, usage) as above.
void correct_by_compressions(const std::string& path, EstimateReport& report);

}  // namespace quern::cli
