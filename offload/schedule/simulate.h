// Replays a schedule with given rates: how long a step takes, and what every resource does when.
#pragma once

#include <span>

#include "offload/schedule/machine.h"

namespace quern::offload {

enum class Activity { read, to_gpu, update, update_on_gpu, from_gpu, write };

/// A resource at work, in seconds from the beginning of the step.
struct BusySpan {
  Activity activity = Activity::update;
  std::size_t path = kInMemory;  ///< of reads and writes
  std::size_t job = 0;
  double begin = 0;
  double end = 0;
};

/// A subgroup in a folder takes a buffer in host memory, in the order of the schedule, is read, updated on the CPU (then
/// its weights go to the GPU) or goes to the GPU, is updated there and comes back, and is written; then the buffer is
/// free. No resource waits while something waits for it. Returns the seconds of the step; infinity where a resource
/// that is needed has no rate. O(n (log n + p)) for n subgroups and p paths. `spans`: null, or gets what took place, in the order of its ends.
double simulate(const Machine& machine, std::span<const Job> jobs, std::span<const Placed> schedule,
                Vector<BusySpan>* spans = nullptr);

}  // namespace quern::offload
