// What schedulers and fixed codes would store of a made-up workload before nodes are full.
#pragma once

#include "checkpoint/placement/schedulers.h"

namespace quern::checkpoint {

/// Items of sizes spread evenly over their logarithm, the largest 256 times the smallest, as many bytes together as the
/// nodes have room, with targets of 0.9 to 0.999999 and times of 30 to 1,461 days. Depends on the arguments alone.
Vector<Item> make_workload(std::span<const Node> nodes, std::size_t count, std::uint64_t seed);

struct Simulated {
  const char* name = "";
  std::size_t items = 0;     ///< that were stored; what found no place was passed over
  double item_bytes = 0;     ///< of them
  double stored_bytes = 0;   ///< with parity
  double write_seconds = 0;  ///< one item after the other
  double read_seconds = 0;
};

/// The four schedulers, then RS(4,2) and RS(10,4), each on empty copies of the nodes. Nobody fails meanwhile.
Vector<Simulated> simulate(std::span<const Node> nodes, std::span<const Item> items);

/// "min-storage" and so on.
const char* scheduler_name(Scheduler scheduler);
inline constexpr Scheduler kSchedulers[] = {Scheduler::min_storage, Scheduler::least_used, Scheduler::balanced,
                                            Scheduler::saturation};

}  // namespace quern::checkpoint
