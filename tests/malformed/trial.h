// One trial: hostile bytes through every path that decodes, under a memory and a time limit, and what came of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/golden/golden_cases.h"

namespace quern::malformed {

inline constexpr std::uint64_t kMemoryLimit = UINT64_C(64) << 20;
/// A trial whose values take more than this is stopped: hostile streams may hold many values in few bytes.
inline constexpr std::uint64_t kMostValues = UINT64_C(8) << 20;

/// Counts of what trials ended in; printed at the end of a test.
struct Tally {
  std::uint64_t trials = 0;
  std::uint64_t refused = 0;
  std::uint64_t accepted = 0;
  double slowest_seconds = 0;
  std::string slowest;

  std::string text() const;
};

struct Limits {
  double seconds = 0;      ///< of one trial
  std::size_t stride = 1;  ///< take every stride-th trial
};

/// Limits of this build and run: fewer and slower where a sanitizer watches.
Limits limits();

/// Decodes strictly with the limits and counts; the arrays when they were accepted. Fails the running test when the
/// trial takes too long.
Result<std::vector<testing::OwnedArray>> decode_strictly(const std::string& name, std::span<const std::uint8_t> bytes,
                                                         Tally& tally);

/// Every other path: inspect, list_streams, keep_going, a region. Fails the running test when one of them contradicts
/// the strict result or takes too long.
void try_other_paths(const std::string& name, std::span<const std::uint8_t> bytes,
                     const Result<std::vector<testing::OwnedArray>>& strict);

}  // namespace quern::malformed
