// A progress line on stderr: on a terminal only, unless told otherwise, ten times a second at most.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include <quern/execution.h>

#include "cli/args/args.h"

namespace quern::cli {

/// What stands behind the name: "42 %, 35 MB/s, 12 s left"; without a rate where elements have no size, without the
/// time left while too little is done to tell, and with the time that has passed while nothing is.
std::string progress_text(std::uint64_t done, std::uint64_t total, std::uint64_t element_bytes, double seconds);

/// Shows the line while work is under way and takes it away at the end. Output never goes to stdout, and a line that
/// cannot be written changes nothing.
class Progress {
 public:
  /// `element_bytes`: 0 where what is counted has no size.
  Progress(std::string name, const RunArgs& run, std::uint64_t element_bytes = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  bool is_on() const { return on_; }
  /// Never cancels. Empty when progress is off; must not outlive this object.
  ProgressCallback callback();
  /// Work that goes back begins anew, as does the next stream of a file.
  void update(std::uint64_t done, std::uint64_t total);
  void set_element_bytes(std::uint64_t bytes) { element_bytes_ = bytes; }
  void set_name(std::string name) { name_ = std::move(name); }
  /// Takes the line away until the next update, as before a message.
  void clear();

 private:
  std::string name_;
  std::uint64_t element_bytes_;
  bool on_ = false;
  bool shown_ = false;
  std::uint64_t done_ = 0;
  std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace quern::cli
