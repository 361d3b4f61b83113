// The file that says what an offloaded state is: its shape, its step, and which file holds each subgroup. It is the
// only file that is replaced; whoever reads it sees the state before a step or the one after.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/tensor/at_rest.h"
#include "storage/content_hash.h"

namespace quern::offload {

struct StoredSubgroup {
  std::uint32_t folder = 0;
  std::uint64_t stamp = 0;         ///< of the pass that wrote it, a part of its file's name
  std::uint64_t beside_bytes = 0;  ///< of its moments
  storage::ContentHash hash;       ///< of what lies in memory, see subgroup_file.h
  /// Of its file, where that is entropy coded; 0: the file holds what lies in memory.
  std::uint64_t packed_bytes = 0;
};

struct Manifest {
  storage::ContentHash state;  ///< as in each folder's member file (members.h)
  Vector<std::uint64_t> region_values;
  std::uint64_t subgroup_values = 0;
  codec::tensor::AtRestForm form;
  std::uint64_t seed = 0;
  std::uint64_t step = 0;   ///< steps done
  std::uint64_t stamp = 0;  ///< of the last pass
  std::uint32_t folders = 0;
  Vector<StoredSubgroup> groups;  ///< in order
};

/// Steps that a state counts: numbers of steps are signed in its readers.
inline constexpr std::uint64_t kMostSteps = INT64_MAX;
inline constexpr std::uint64_t kMostManifestBytes = UINT64_C(1) << 30;

Vector<std::uint8_t> write_manifest(const Manifest& manifest);
/// Any bytes; fails with `corrupt`, `bad_magic`, `checksum_mismatch` or `unsupported_version`. What it returns is whole:
/// as many subgroups as the regions are cut into, each in a folder that there is.
Result<Manifest> parse_manifest(std::span<const std::uint8_t> bytes);

}  // namespace quern::offload
