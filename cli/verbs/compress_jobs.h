// Which array goes under which bound into which file.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <quern/bound.h>

#include "cli/args/args.h"
#include "cli/args/exit_codes.h"
#include "cli/files/many_files.h"

namespace quern::cli {

struct CompressJob {
  std::string input;
  std::string dataset;
  ErrorBound bound;
  /// How the array came to its bound: by name, as the only field of its file, or with all others.
  enum class Choice { named, only, all } choice = Choice::only;
  std::string output;  ///< "-" is standard output
};

struct CompressPlan {
  std::vector<CompressJob> jobs;
  std::uint64_t left_alone = 0;       ///< jobs left out, since their output exists (--skip-existing)
  std::set<std::string> kept_inputs;  ///< their inputs, which --rm leaves
  std::uint64_t failed = 0;           ///< inputs left out, since they cannot be read; each was told of
  Exit result = Exit::ok;             ///< the code of the first of those
};

/// Throws CliError (usage) when inputs, datasets and -o do not fit together. With -r or --files-from an input that
/// cannot be read does not stop the others.
CompressPlan plan_compress_jobs(const CompressArgs& args, const std::vector<FoundFile>& files);

}  // namespace quern::cli
