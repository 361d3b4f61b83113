// Lanes of residuals as arrays, and back.
#include "kernels/entropy/cpu/residual_lanes.h"

namespace quern::kernels {

ResidualLanes::ResidualLanes(std::span<const RansSource> sources) : mask(sources.size() - 1) {
  // A state's four bytes lie before the words of its lane.
  words = sources[0].at - 4;
  for (std::size_t lane = 0; lane < sources.size(); ++lane) {
    states[lane] = sources[lane].state;
    at[lane] = static_cast<std::uint32_t>((sources[lane].at - words) / 2);
    end[lane] = static_cast<std::uint32_t>((sources[lane].end - words) / 2);
    failed |= static_cast<std::uint32_t>(sources[lane].failed) << lane;
  }
}

bool ResidualLanes::finished() const {
  if (failed != 0) return false;
  for (std::size_t lane = 0; lane <= mask; ++lane)
    if (at[lane] != end[lane] || states[lane] != kRansFloor) return false;
  return true;
}

}  // namespace quern::kernels
