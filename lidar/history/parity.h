// Making, checking and using the parity of a history: of the files of a set as many may be lost or damaged as it has
// parity files, and come back bit for bit.
#pragma once

#include "lidar/history/parity_sets.h"

namespace quern::lidar {

struct ParityNumbers {
  std::uint32_t data = 8;    ///< files of a full set
  std::uint32_t parity = 2;  ///< parity files over them
};

struct GuardedHistory {
  ParityNumbers numbers;
  std::uint64_t files = 0;         ///< that are guarded
  std::uint64_t made_sets = 0;     ///< by this call
  std::uint64_t parity_bytes = 0;  ///< of all parity files
};

/// Guards every epoch and segment; the caller holds the history's lock. Full sets stay as they are; files that are in
/// none, those of sets that are not full and those of sets of other numbers come into new sets, large files together.
/// New sets are published before old ones go. Without numbers those of the sets that are there count, else 8 and 2.
/// Fails with `corrupt` where a file that a set guards is not there or a file to guard is damaged: parity over it would
/// keep the damage. O(bytes of the files read); memory: 1 MiB for each file of a set.
Result<GuardedHistory> guard_history(History& history, std::optional<ParityNumbers> numbers, Report& report);

/// Removes all parity; the caller holds the history's lock. Returns how many sets there were.
Result<std::uint64_t> drop_parity(History& history, Report& report);

struct ParityCheck {
  std::uint64_t sets = 0;
  std::uint64_t guarded = 0;    ///< files
  std::uint64_t unguarded = 0;  ///< files that no set has; 0 where there is no parity at all
  Vector<String> mended;        ///< files
  Vector<String> damage;        ///< a sentence each, of what was not mended
};

/// Compares the files of all sets with their checksums. With `mend`, for which the caller holds the history's lock,
/// damaged and missing files come back wherever their set suffices; the other files are left as they are. Fails only
/// where the system refuses.
Result<ParityCheck> check_parity(History& history, bool mend, Report& report);

}  // namespace quern::lidar
