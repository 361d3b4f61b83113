// The library's own TaskRunner: a few std::threads for the length of one call. Not used when the caller brings a
// runner.
#pragma once

#include <memory>

#include <quern/execution.h>

namespace quern {

/// Runner for an Execution: the caller's if there is one, else a pool of `threads` (1: the calling thread alone).
/// The returned object owns its threads and joins them when destroyed.
class RunnerHandle {
 public:
  explicit RunnerHandle(const Execution& execution);
  ~RunnerHandle();
  RunnerHandle(const RunnerHandle&) = delete;
  RunnerHandle& operator=(const RunnerHandle&) = delete;
  TaskRunner& get() { return *runner_; }

 private:
  std::unique_ptr<TaskRunner> owned_;
  TaskRunner* runner_ = nullptr;
};

}  // namespace quern
