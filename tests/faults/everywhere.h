// Every operation of a change made to fail in every way, and every state that the machine may come back with.
#pragma once

#include <functional>
#include <string>

#include "tests/faults/simulated_disk.h"

namespace quern::testing {

struct CrashCounts {
  std::size_t operations = 0;  ///< of the change where nothing fails
  std::size_t points = 0;      ///< states that were checked
};

/// Calls `run` on copies of a disk, the first time without a fault, when it must succeed. `check` gets each disk as it
/// is after a crash, whether the change said that it succeeded, and a text for failures; it says whether to go on.
/// Of a change that takes long only each `every`-th operation fails, by each kind of fault another one.
CrashCounts crash_everywhere(const SimulatedDisk& before, const std::function<Status(SimulatedDisk&)>& run,
                             const std::function<bool(SimulatedDisk&, bool, const std::string&)>& check,
                             std::size_t every = 1);

}  // namespace quern::testing
