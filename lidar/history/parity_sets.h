// Parity of a history: sets of its files with parity files over them, in the folder parity/. Which files a set guards
// stands in the header of each of its parity files; the hash of that list names the set, so each finds the others.
// Stored form: docs/format-history.md, 8. Parity is made, checked and used by lidar/history/parity.h.
#pragma once

#include <set>

#include "lidar/history/history.h"

namespace quern::lidar {

/// A file of a history, below its root: "segments/HASH", "epochs/NNNNNNNNNNNN-HASH".
struct GuardedFile {
  String name;
  std::uint64_t bytes = 0;
};

struct ParityList {
  static constexpr std::uint64_t kMostFileBytes = UINT64_C(1) << 48;

  std::uint32_t data = 0;    ///< files of a full set; `files` has at most as many
  std::uint32_t parity = 0;  ///< parity files
  Vector<GuardedFile> files;
};

/// Whether the numbers are possible: at least one of each, at most 64 together.
bool are_parity_numbers(std::uint64_t data, std::uint64_t parity);

/// The beginning of parity file `index` of a set. May throw std::bad_alloc, as the others here.
Vector<std::uint8_t> write_parity_header(const ParityList& list, std::uint8_t index);
/// Any bytes are safe; what follows the header is ignored. Fails with `corrupt`, `truncated`, `checksum_mismatch` or
/// `unsupported_version`.
Result<ParityList> read_parity_header(std::span<const std::uint8_t> bytes, std::uint8_t& index);
/// No header is longer.
inline constexpr std::size_t kMostParityHeaderBytes = 8192;

/// The name of a set.
ContentHash parity_name(const ParityList& list);

struct ParitySet {
  ContentHash name;
  std::optional<ParityList> list;  ///< nothing: no header of its parity files holds
  Vector<String> files;            ///< its parity files that are there, paths
};

/// Sets of a history by their names; none where it has no parity.
Result<Vector<ParitySet>> parity_sets(const History& history, Report& report);

/// Names of all epochs and segments, rising.
Result<Vector<String>> guardable_files(const History& history, Report& report);

/// Removes the parity files of a set.
Status remove_parity_set(const History& history, const ParitySet& set, Report& report);

/// Removes sets that guard any of these files, or of which no header holds, before the files go. Returns how many other
/// files they guarded. The caller holds the history's lock.
Result<std::uint64_t> remove_parity_of(const History& history, const std::set<String>& names, Report& report);

}  // namespace quern::lidar
