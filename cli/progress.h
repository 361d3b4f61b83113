// A progress line on stderr: on a terminal only, unless told otherwise, ten times a second at most.
#pragma once

#include <chrono>
#include <string>

#include <quern/execution.h>

#include "cli/args.h"

namespace quern::cli {

/// Shows "NAME  42 %" while work is under way, or "NAME  0 %, 12 s" while nothing is done for good, as in a search, and
/// takes the line away at the end. Output never goes to stdout.
class Progress {
 public:
  Progress(std::string name, const RunArgs& run);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool is_on() const { return on_; }
  /// Never cancels. Empty when progress is off; must not outlive this object.
  ProgressCallback callback();
  void update(std::uint64_t done, std::uint64_t total);

 private:
  std::string name_;
  bool on_ = false;
  bool shown_ = false;
  std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace quern::cli
