#include "offload/layout.h"

#include <algorithm>

#include "kernels/tensor/at_rest.h"

namespace quern::offload {

Result<Vector<Subgroup>> cut_subgroups(std::span<const std::uint64_t> region_values, std::uint64_t subgroup_values) {
  constexpr std::uint64_t kTile = kernels::kAtRestTile;
  constexpr std::uint64_t kBlock = kernels::kAtRestBlock;
  if (subgroup_values == 0 || subgroup_values % kTile != 0 || subgroup_values > kMostValues)
    return Status(StatusCode::invalid_argument, "a subgroup has {0} values; give a multiple of 16384",
                  static_cast<std::int64_t>(subgroup_values));
  Vector<Subgroup> groups;
  std::uint64_t base = 0;
  for (std::size_t r = 0; r < region_values.size(); ++r) {
    const std::uint64_t values = region_values[r];
    if (values > kMostValues - base)
      return Status(StatusCode::invalid_argument, "region {0} ends beyond 2^48 values", static_cast<std::int64_t>(r));
    const std::uint64_t cuts = (values + subgroup_values - 1) / subgroup_values;
    if (cuts > kMostSubgroups - groups.size())
      return Status(StatusCode::invalid_argument,
                    "subgroups of {0} values make more than {1} of them; give larger subgroups",
                    static_cast<std::int64_t>(subgroup_values), static_cast<std::int64_t>(kMostSubgroups));
    for (std::uint64_t begin = 0; begin < values; begin += subgroup_values)
      groups.push_back({r, begin, std::min(subgroup_values, values - begin), base + begin});
    base += (values + kBlock - 1) / kBlock * kBlock;
  }
  return groups;
}

}  // namespace quern::offload
