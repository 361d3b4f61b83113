// Whether a history is whole, and making room in it.
#pragma once

#include "lidar/history/history.h"

namespace quern::lidar {

struct HistoryCheck {
  std::uint64_t epochs = 0;
  std::uint64_t tiles = 0;     ///< of all epochs
  std::uint64_t parts = 0;     ///< that were read
  std::uint64_t left_out = 0;  ///< of bundles: parts that they do not have
  Vector<String> damage;       ///< a sentence each
};

/// Reads every epoch and every part and compares them with their hashes. Fails only where the folder cannot be read.
Result<HistoryCheck> check_history(History& history, Report& report);

struct CollectHistory {
  std::uint64_t keep = UINT64_MAX;  ///< newest epochs, at least 1
  Vector<ContentHash> roots;        ///< epochs that stay, too
  bool damaged_too = false;         ///< epochs whose files are damaged go first, and do not count
  bool dry_run = false;
};

struct CollectedHistory {
  Vector<EpochName> removed;
  std::uint64_t freed_bytes = 0;     ///< of epochs and segments, less what was written anew
  std::uint64_t without_parity = 0;  ///< files that stay but lost their parity, for it was of removed files, too
};

/// Removes epochs, and then parts that no epoch needs, and before either the parity over them; the caller holds the history's lock. Parts that stay of a
/// segment with more to lose than to keep move to a new one, which is published before the old one goes. A segment with
/// a damaged part that has no good copy stays. Fails where an epoch that stays is damaged, for nobody knows what it
/// needs.
Result<CollectedHistory> collect_history(History& history, const CollectHistory& options, Report& report);

}  // namespace quern::lidar
