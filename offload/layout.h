// How parameters are cut: regions (parameters with settings of their own) lie one after the other in a flat space, each
// is cut into subgroups of one size but its last. A subgroup is what is read, updated and written at once.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>
#include <quern/status.h>

namespace quern::offload {

struct Subgroup {
  std::size_t region = 0;
  std::uint64_t begin = 0;  ///< its first value, in the region
  std::uint64_t values = 0;
  std::uint64_t first_value = 0;  ///< in the flat space, where regions begin at multiples of a block at rest
};

inline constexpr std::uint64_t kMostValues = UINT64_C(1) << 48;
inline constexpr std::uint64_t kMostSubgroups = UINT64_C(1) << 22;

/// `subgroup_values` must be a multiple of 16384, a tile. Regions without values have no subgroups.
Result<Vector<Subgroup>> cut_subgroups(std::span<const std::uint64_t> region_values, std::uint64_t subgroup_values);

}  // namespace quern::offload
