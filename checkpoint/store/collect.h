// Making room: removing checkpoints that nothing needs.
#pragma once

#include <optional>

#include "checkpoint/store/store.h"

namespace quern::checkpoint {

/// Keeps the checkpoints whose tag `metric` has the smallest or largest numbers.
struct KeepBest {
  std::size_t count = 0;
  String metric;
  bool largest = false;
};

struct CollectOptions {
  // What stays, as far as it is whole. Without any of the three all stays.
  std::optional<std::size_t> keep;  ///< the newest of this number
  std::uint64_t keep_every = 0;     ///< steps that are multiples of it; 0: none
  std::optional<KeepBest> best;
  Vector<std::uint64_t> remove;  ///< steps to remove besides
  /// Checkpoints to remove besides: these very ones. One that is not there, or was replaced, is passed over.
  Vector<CheckpointName> remove_exactly;
  bool dry_run = false;
};

struct Collected {
  Vector<CheckpointName> removed;
  Vector<CheckpointName> kept_for_others;  ///< were to go, but what stays needs tensors of them
  std::uint64_t freed_bytes = 0;           ///< of parts, parity and manifests
};

/// Removes manifests first, then data. A checkpoint stays when it is to stay, or when a tensor of one that stays needs
/// a tensor of it; then it is retired (it is no checkpoint any more) if a tensor of its own needs what goes. A manifest
/// that cannot be read keeps itself. Checkpoints newer than the oldest that `keep` holds stay although they are
/// damaged. Waits for nobody: fails, and is_busy() knows the status, when a save or
/// another collection is under way.
Result<Collected> collect(const Store& store, const CollectOptions& options, Report& report);

/// Removes checkpoints whose step was saved again, as collect() does, if nothing else is under way in the store: else
/// the next collection does it. Best effort.
void remove_replaced(const Store& store, Report& report);

}  // namespace quern::checkpoint
