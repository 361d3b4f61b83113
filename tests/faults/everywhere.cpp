#include "tests/faults/everywhere.h"

#include <gtest/gtest.h>

#include "tests/support/instrumented.h"

namespace quern::testing {
namespace {

constexpr FaultKind kFaults[] = {FaultKind::kill,          FaultKind::torn_512,  FaultKind::torn_4096,
                                 FaultKind::io_error,      FaultKind::disk_full, FaultKind::short_write,
                                 FaultKind::io_error_after};
constexpr Survival kSurvivals[] = {Survival::everything, Survival::durable, Survival::names,  Survival::data,
                                   Survival::mixture,    Survival::mixture, Survival::mixture};

}  // namespace

CrashCounts crash_everywhere(const SimulatedDisk& before, const std::function<Status(SimulatedDisk&)>& run,
                             const std::function<bool(SimulatedDisk&, bool, const std::string&)>& check,
                             std::size_t every) {
  CrashCounts counts;
  {
    SimulatedDisk disk(before);
    disk.fail_at(static_cast<std::size_t>(-1), FaultKind::none);
    const Status status = run(disk);
    EXPECT_TRUE(status.ok()) << status.text();
    counts.operations = disk.operations();
  }
  const std::size_t stride = kInstrumented ? std::max<std::size_t>(every, 5) : every;
  for (const FaultKind fault : kFaults) {
    for (std::size_t k = static_cast<std::size_t>(fault) % stride; k < counts.operations; k += stride) {
      SimulatedDisk disk(before);
      disk.fail_at(k, fault);
      const bool succeeded = run(disk).ok();
      if (!disk.fault_happened()) continue;
      std::uint64_t seed = k * 31;
      for (const Survival survival : kSurvivals) {
        ++counts.points;
        const std::string where = "fault " + std::to_string(static_cast<int>(fault)) + " at operation " +
                                  std::to_string(k) + ", survival " + std::to_string(static_cast<int>(survival)) +
                                  ", seed " + std::to_string(seed);
        SimulatedDisk after = disk.after(survival, seed++);
        if (!check(after, succeeded, where)) return counts;
      }
    }
  }
  return counts;
}

}  // namespace quern::testing
