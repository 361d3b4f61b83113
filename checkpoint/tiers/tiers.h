// Stores behind a store: a further directory holds copies of its checkpoints, for when the first is lost or full.
#pragma once

#include "checkpoint/store/collect.h"
#include "checkpoint/tiers/copy_checkpoint.h"

namespace quern {
class TaskRunner;
}

namespace quern::checkpoint {

/// A tier behind the first, and which steps it is to have.
struct Tier {
  const Store* store = nullptr;
  std::uint64_t every = 1;  ///< steps that are multiples of it
  /// For evictable(): what the tier was found to have whole, which is believed; null: it is read.
  const Vector<CheckpointName>* whole = nullptr;

  bool wants(std::uint64_t step) const { return step % every == 0; }
};

/// Fails when the tier has a newer checkpoint than `first` that `first` does not know: another run wrote it, or the
/// first directory was lost. What were copied now would be found behind it.
Status check_order(const Store& first, const Store& tier, Report& report);

/// Checkpoints of `first` that the tier wants and does not list, in the order they were published; without those older
/// than the oldest that the tier has, which were collected there. `thorough`: with those whose copy is not whole, and how
/// many are left out becomes a note.
Result<Vector<CheckpointName>> missing_on(const Store& first, const Tier& tier, Report& report, bool thorough = false);

/// Whether the tier has the checkpoint, or one of the same place and values, with all that it needs; reads parts'
/// sizes and indexes, not every byte.
bool is_whole_on(const Store& tier, const Manifest& manifest);

/// Those of `first`, without its newest `keep`, that the tier has whole.
Result<Vector<CheckpointName>> whole_on(const Store& first, const Store& tier, std::size_t keep, Report& report);

/// Checkpoints of `first` that may go: all but the newest `keep`, where each tier that wants them, and one at least, has
/// them whole. Those that stay for want of a copy become notes. What no tier wants is the business of collect().
Result<Vector<CheckpointName>> evictable(const Store& first, std::span<const Tier> tiers, std::size_t keep,
                                         Report& report);

struct Found {
  std::size_t tier = 0;  ///< place in the list
  Manifest manifest;
};

/// The newest checkpoint, or the newest of that step, that any of the stores has whole, every byte and every value
/// compared with its hash; of equal ones that of the first store in the list. A store that cannot be read, and what was
/// passed over, become notes.
Result<Found> newest_of(std::span<const Store> stores, TaskRunner& runner, Report& report,
                        std::optional<std::uint64_t> step = {});

}  // namespace quern::checkpoint
