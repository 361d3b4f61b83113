// What benches of the command share: a folder that goes with its bench, Ctrl-C, medians.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/args/exit_codes.h"
#include "cli/files/interrupt.h"

namespace quern::cli {

/// A new folder in `parent`, removed with all that is in it when the object dies.
class BenchFolder {
 public:
  explicit BenchFolder(const std::string& parent) {
    std::string pattern = parent + "/quern-bench-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) fail_errno(parent, "make a folder in it");
    path_ = pattern;
  }
  ~BenchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  BenchFolder(const BenchFolder&) = delete;
  BenchFolder& operator=(const BenchFolder&) = delete;
  std::string inside(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Ends the bench, whose folder is removed on the way out.
inline void check_interrupt() {
  if (SignalGuard::is_interrupted()) fail(Exit::interrupted, "interrupted");
}

inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace quern::cli
