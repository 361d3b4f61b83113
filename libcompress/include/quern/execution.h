// Where and with what a call runs: threads, device, memory limit, progress. Owned by the caller, never by global state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

/// A reference to a callable `void(std::size_t index)`; does not own it and never allocates.
class TaskBody {
 public:
  template <class F>
  TaskBody(const F& f)  // NOLINT: implicit, so that a lambda can be passed
      : object_(&f), call_([](const void* object, std::size_t i) { (*static_cast<const F*>(object))(i); }) {}
  void operator()(std::size_t index) const { call_(object_, index); }

 private:
  const void* object_;
  void (*call_)(const void*, std::size_t);
};

/// Runs `tasks` calls of `body(index)`, each index once, in any order and on any thread, and returns when all have
/// returned. A caller may supply its own (a simulation's pool); the library starts no threads of its own then.
class TaskRunner : public Allocated {
 public:
  virtual ~TaskRunner() = default;
  virtual void run(std::size_t tasks, const TaskBody& body) = 0;
  /// Number of calls that may be under way at once; used for sizing scratch only, never for the format.
  virtual std::size_t width() const = 0;
};

/// Runs the tasks in order on the calling thread.
class SerialRunner final : public TaskRunner {
 public:
  void run(std::size_t tasks, const TaskBody& body) override {
    for (std::size_t i = 0; i < tasks; ++i) body(i);
  }
  std::size_t width() const override { return 1; }
};

class Device;  // quern/device.h

/// Progress in elements; return false to cancel. Called from the thread that called the library.
using ProgressCallback = std::function<bool(std::uint64_t done, std::uint64_t total)>;

struct Execution {
  /// Threads when `runner` is null: 1 runs on the calling thread, 0 means one a hardware thread.
  std::size_t threads = 1;
  /// Caller's runner; overrides `threads`. Must outlive the call.
  TaskRunner* runner = nullptr;
  /// Upper limit of what a call may allocate, in bytes. The output bytes do not depend on it.
  std::uint64_t memory_limit = UINT64_C(1) << 40;
  ProgressCallback progress;
  /// Where segments are encoded and decoded; null: on the threads above, as is what a device has no kernels for. Must
  /// outlive the call.
  Device* device = nullptr;
};

}  // namespace quern
