// The command line of quern-mpi: its own options, the inputs, and what each rank's quern is told.
#pragma once

#include <string>
#include <vector>

#include "cli/args/args.h"

namespace quern::cli::mpi {

enum class Work { compress, decompress, verify, h5_pack };

struct Request {
  Work work = Work::compress;
  std::vector<std::string> inputs;
  std::vector<std::string> passed;  ///< options of quern's own verb, in order
  ManyArgs many;
  std::string output;   ///< the folder that outputs go to; of verify: where the streams are
  std::string journal;  ///< empty: quern-mpi.journal in the output folder
  DataArgs data;        ///< what the options say of raw files
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  ProgressMode progress = ProgressMode::automatic;
};

/// Throws CliError (usage) with a sentence that says what to type.
Request read_words(const std::vector<std::string>& words);

const char* usage_text();

}  // namespace quern::cli::mpi
