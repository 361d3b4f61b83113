// Labels for training: each file under each codec and bound, one line of a CSV file a run.
#pragma once

#include "cli/args/args.h"
#include "cli/args/exit_codes.h"

namespace quern::cli {

/// Appends runs to args.csv; those it has already are not made again. A run that fails gets a line that says so and
/// the next one begins.
Exit run_sweep(const BenchArgs& args);

}  // namespace quern::cli
