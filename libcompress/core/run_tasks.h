// Running fallible tasks on a TaskRunner. Errors are deterministic: the one of the lowest index is reported, whatever
// the order the tasks ran in. Tasks take memory where the caller does.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>

#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

namespace quern {

/// Calls `body(i)` for each i below `tasks`. Tasks above the lowest failure so far are skipped. No exception leaves a
/// task. `succeeded`, if given, receives the number of tasks before the one that failed.
template <class Body>
Status run_tasks(TaskRunner& runner, std::size_t tasks, const Body& body, std::size_t* succeeded = nullptr) {
  std::atomic<std::size_t> lowest{SIZE_MAX};
  std::mutex mutex;
  Status first;
  std::pmr::memory_resource* const memory = current_memory();
  runner.run(tasks, [&](std::size_t i) {
    if (i > lowest.load(std::memory_order_relaxed)) return;
    const MemoryScope scope(memory);
    Status status;
    try {
      status = body(i);
    } catch (const std::bad_alloc&) {
      status = Status(StatusCode::out_of_memory, "out of memory");
    }
    if (status.ok()) return;
    const std::lock_guard lock(mutex);
    if (i < lowest.load()) {
      lowest.store(i);
      first = status;
    }
  });
  if (succeeded != nullptr) *succeeded = first.ok() ? tasks : lowest.load();
  return first;
}

}  // namespace quern
