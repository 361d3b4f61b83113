// Which array goes under which bound into which file.
#pragma once

#include <string>
#include <vector>

#include <quern/bound.h>

#include "cli/args/args.h"

namespace quern::cli {

struct CompressJob {
  std::string input;
  std::string dataset;
  ErrorBound bound;
  /// How the array came to its bound: by name, as the only field of its file, or with all others.
  enum class Choice { named, only, all } choice = Choice::only;
  std::string output;  ///< "-" is standard output
};

/// Throws CliError (usage) when inputs, datasets and -o do not fit together.
std::vector<CompressJob> plan_compress_jobs(const CompressArgs& args);

}  // namespace quern::cli
