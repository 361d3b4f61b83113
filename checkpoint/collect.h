// Making room: removing checkpoints that nothing needs, and storing one anew so that it needs no other.
#pragma once

#include <quern/execution.h>

#include "checkpoint/save.h"

namespace quern::checkpoint {

struct CollectOptions {
  std::optional<std::size_t> keep;       ///< the newest of this number stay; nothing: all stay
  Vector<std::uint64_t> remove;          ///< steps to remove besides
  bool dry_run = false;
};

struct Collected {
  Vector<CheckpointName> removed;
  Vector<CheckpointName> kept_for_others;  ///< were to go, but what stays needs them
  std::uint64_t freed_bytes = 0;           ///< of parts, parity and manifests
};

/// Removes manifests first, then data. A manifest that cannot be read keeps itself and everything that others need.
/// Waits for nobody: fails when a save or another collection is under way.
Result<Collected> collect(const Store& store, const CollectOptions& options, Report& report);

/// Saves the checkpoint of that step again without bases or values of other checkpoints, then removes the old form. What
/// comes back stays the same bit for bit: weights that ebq had predicted from a base are stored without further loss.
/// Fails when other checkpoints need it.
Result<SaveResult> compact(const Store& store, std::uint64_t step, const SaveOptions& options, TaskRunner& runner,
                           Report& report);

}  // namespace quern::checkpoint
