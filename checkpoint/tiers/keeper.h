// The work of a keeper: a store in memory, from which checkpoints go to a store on a disk, and that holds the newest of
// them within a limit. The trainer saves to the store in memory; what is there outlives it.
#pragma once

#include "checkpoint/tiers/tiers.h"

namespace quern::checkpoint {

struct KeeperOptions {
  std::uint64_t memory_bytes = 0;  ///< most that checkpoints in memory take, the one being written included
  std::uint64_t every = 1;         ///< the store gets the steps that are multiples of it
  bool copies = true;              ///< false: the round only looks after memory, for a store that failed a moment ago
  CopyControl copy;
  std::optional<CheckpointName> stays;  ///< does not leave memory, as parity of other keepers covers it
};

/// What a keeper remembers from one round to the next; of checkpoints that are in memory alone.
struct KeeperState {
  Vector<CheckpointName> copied;  ///< were seen whole in the store
  Vector<CheckpointName> failed;  ///< cannot be copied, for they are damaged; not tried again
  // The last collection that removed nothing: of these, when all those were there. It is not repeated.
  Vector<CheckpointName> asked_in_vain, seen_then;
};

/// What one round did, and what is there now.
struct Kept {
  std::uint64_t copied = 0;
  std::uint64_t copied_bytes = 0;
  std::uint64_t dropped = 0;
  std::uint64_t held_bytes = 0;  ///< of parts and parity in memory
  Vector<std::uint64_t> steps;   ///< in memory, the order is that of publishing
  Vector<std::uint64_t> lost;    ///< left memory, and the store should have had them and has no whole copy
};

/// Before the first round: a memory that has nothing gets the newest checkpoint of the store, so that what is saved
/// there comes behind it in the order, and a restart finds it. Fails where that, all that it needs and one more of its
/// size are more than the limit, and where the store is spread over nodes with another parity than that of the newest
/// checkpoint in memory.
Status fill_memory(const Store& memory, const Store& store, const KeeperOptions& options, TaskRunner& runner,
                   Report& report);

/// One round. Copies to the store what it lacks, and what it holds damaged where that is about to leave memory. Leaves
/// in memory the newest checkpoints that are whole, as many as fit, with all that they need, beside one more of the
/// size of the newest, and that one and `stays` always: an older one goes only when a newer one is whole. What the
/// store has whole goes first; what was not copied goes when copying is over, and stands in `lost`. While copies are
/// under way memory does not grow beyond the limit, or beyond what the round found if that was more, and one
/// checkpoint. A damaged checkpoint becomes a note. Where another one cannot be copied, the round does the rest and
/// returns the first such failure. Waits for nobody: what others use stays for the next round.
Status keep_once(const Store& memory, const Store& store, const KeeperOptions& options, KeeperState& state, Kept& out,
                 Report& report);

}  // namespace quern::checkpoint
