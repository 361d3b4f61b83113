// Which files a run is over, and the words that each file's quern is given.
#pragma once

#include <string>
#include <vector>

#include "cli/mpi/journal.h"
#include "cli/mpi/words.h"

namespace quern::cli::mpi {

struct Job {
  std::string input;
  std::string output;  ///< of compress and decompress the folder, else the file
};

struct JobList {
  std::vector<Job> jobs;
  std::uint64_t others = 0;  ///< files below folders that are no inputs
};

/// Throws CliError.
JobList list_jobs(const Request& request);

/// Where a run's journal is.
std::string journal_path(const Request& request);
/// Verb and options, by which a journal knows its run again.
std::vector<std::string> run_words(const Request& request);
/// The file that a job writes; empty for verify. Of an input with several arrays the one named like the input.
std::string written_file(const Request& request, const Job& job);
/// The command line of one job's quern, whose output may replace what a run before left (`again`).
std::vector<std::string> quern_words(const Request& request, const Job& job, bool again);

/// Bytes of arrays and of streams in the JSON lines that quern printed.
struct Bytes {
  std::uint64_t raw = 0;
  std::uint64_t stored = 0;
};
Bytes bytes_in(const std::string& json_lines, Work work);

}  // namespace quern::cli::mpi
