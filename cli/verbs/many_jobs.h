// The files of one run of compress or decompress: side by side or one after the other, with one progress line and one
// line at the end for all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/args/args.h"
#include "cli/files/many_files.h"
#include "cli/files/side_by_side.h"

namespace quern::cli {

/// What a verb does with each of its files.
struct ManyJobs {
  std::vector<std::string> inputs;  ///< of each job, for messages; a file may have several jobs
  /// Does job i under the given settings and says what became of it; a CliError that it throws is printed and is the
  /// job's outcome.
  std::function<void(std::size_t, const RunArgs&, FileOutcome&)> work;
  /// Called in order in this process when job i is done.
  std::function<void(std::size_t, const FileOutcome&)> finished;
  bool in_one_process = false;      ///< as where a device is used, or a standard stream
  const char* done_word = "";       ///< "compressed"
  std::uint64_t left_alone = 0;     ///< jobs that were not begun, since their output exists
  std::uint64_t failed_before = 0;  ///< inputs that could not be planned
  std::uint64_t others = 0;         ///< files below folders that are no inputs
};

/// Names on the command line and in the list, folders searched where that is asked for. Throws CliError.
FoundFiles find_inputs(const std::vector<std::string>& inputs, const ManyArgs& many,
                       const std::function<bool(const std::string&)>& takes);

/// The folder that outputs go to: `wanted` when it is one, or must become one since the run is over many files; empty
/// when outputs lie beside their inputs or `wanted` is a file. Throws CliError where it is a file and must not be.
std::string output_folder(const std::string& wanted, const ManyArgs& many);

/// Runs all jobs; the first error's code. A sum of all of them is printed where -r or --files-from were given.
Exit run_jobs(const ManyJobs& jobs, const ManyArgs& many, const RunArgs& run);

}  // namespace quern::cli
