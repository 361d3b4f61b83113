// The work of a keeper: a store in memory, from which checkpoints go to a store on a disk, and that holds the newest of
// them within a limit. The trainer saves to the store in memory; what is there outlives it.
#pragma once

#include "checkpoint/tiers/tiers.h"

namespace quern::checkpoint {

struct KeeperOptions {
  std::uint64_t memory_bytes = 0;  ///< most that checkpoints in memory take, the one being written included
  std::uint64_t every = 1;         ///< the store gets the steps that are multiples of it
  CopyControl copy;
};

/// What one round did, and what is there now.
struct Kept {
  std::uint64_t copied = 0;
  std::uint64_t copied_bytes = 0;
  std::uint64_t dropped = 0;
  std::uint64_t held_bytes = 0;  ///< of parts and parity in memory
  Vector<std::uint64_t> steps;   ///< in memory, the order is that of publishing
};

/// Before the first round: a memory that has nothing gets the newest checkpoint of the store, so that what is saved there
/// comes behind it in the order, and a restart finds it. Fails where it takes more than half of the memory.
Status fill_memory(const Store& memory, const Store& store, const KeeperOptions& options, TaskRunner& runner,
                   Report& report);

/// One round. Leaves in memory the newest checkpoints that are whole, as many as fit beside one more of the size of the
/// newest, and that one always: an older one goes only when a newer one is whole. Copies to the store what it lacks; a
/// checkpoint that must go before it was copied becomes a note. Where the store cannot be written, memory is looked
/// after all the same, and that failure is returned. Waits for nobody: what others use stays for the next round.
Status keep_once(const Store& memory, const Store& store, const KeeperOptions& options, Kept& out, Report& report);

}  // namespace quern::checkpoint
