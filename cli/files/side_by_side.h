// Files worked on side by side, each in a process of its own: libraries that read files (HDF5, netCDF) take one caller
// at a time, and a process that is ended, as for want of memory, takes no other file with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "cli/args/args.h"
#include "cli/args/exit_codes.h"

namespace quern::cli {

/// What became of one file.
struct FileOutcome {
  Exit code = Exit::ok;
  std::uint64_t raw_bytes = 0;     ///< of the array
  std::uint64_t stored_bytes = 0;  ///< of the stream
};

/// Done with one file: its outcome and what it said on standard output and standard error.
struct FinishedFile {
  FileOutcome outcome;
  std::string text;
  std::string messages;
};

/// How many files of a run go side by side, and what each of them may use: one a thread, as long as there are files;
/// threads and memory are shared out evenly.
struct Shares {
  std::size_t processes = 1;
  RunArgs run;  ///< of each process: no progress line
};
Shares share_out(const RunArgs& run, std::size_t files);

/// Calls `work(i)` for every i below `count`, in order, each in one of `processes` processes made from this one by
/// fork(); `work` catches what it throws. Calls `finished(i, ...)` in this process, in order of i, as soon as all files
/// before i are finished. A process that is ended by a signal gives its file the code `resource` and a message; the
/// other files go on in another process. `name(i)` is what that message calls the file. Throws CliError (resource)
/// where no process can be made.
void work_side_by_side(std::size_t count, std::size_t processes, const std::function<FileOutcome(std::size_t)>& work,
                       const std::function<std::string(std::size_t)>& name,
                       const std::function<void(std::size_t, const FinishedFile&)>& finished);

}  // namespace quern::cli
