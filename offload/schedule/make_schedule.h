// Chooses a schedule: which subgroups the GPU updates, in which order all go, and where each is written.
#pragma once

#include <span>

#include "offload/schedule/simulate.h"

namespace quern::offload {

/// The share of subgroups like `job` that the GPU updates while the CPU is busy with the others, in closed form: one in
/// k, where (k - 1) P / U_cpu = S / B_to + S / B_from + P / U_gpu for subgroups of P values in S bytes. 0 or 1 where
/// only one of the two is there.
double gpu_share(const Machine& machine, const Job& job);

/// Bytes that each path should hold of so many: in proportion to the slower of its two rates, for what a step writes the
/// next one reads. Equal parts while a rate is not known.
class PathShares {
 public:
  explicit PathShares(std::span<const PathRates> paths);
  /// The path that has the most room left in its share.
  std::size_t place(std::uint64_t bytes);

 private:
  Vector<double> rates_;
  Vector<double> bytes_;
};

/// What is in memory goes first, the rest so that all paths are read at once and end together. The GPU's part begins
/// with the closed form; the simulator decides between it, its neighbours, the CPU alone and the GPU alone, and up to 16
/// subgroups also tries single changes. What counts is the longer of the step and the next step's reads, as simulated, and
/// of equal ones the shorter step: in that no schedule is worse than the better of the two alone. O(n p) for n subgroups
/// and p paths; with a GPU some hundred simulations more, of which all but a few have at most 512 subgroups, and up to 16
/// subgroups as many as fit a fixed amount of work.
Schedule make_schedule(const Machine& machine, std::span<const Job> jobs);

/// Writes one subgroup to each of `paths` paths that would get none, from the first of the schedule on, so that all of
/// them are measured. A path keeps what else it gets; at most a quarter of the subgroups is moved.
void use_every_path(std::size_t paths, Schedule& schedule);

}  // namespace quern::offload
