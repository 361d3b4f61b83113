// Bounds on distance as whole nanometres, so that what is written in decimal means just that.
#pragma once

#include <cmath>
#include <cstdint>

namespace quern::lidar {

/// The largest bound: 104 m, as the scan codec takes it.
inline constexpr std::uint64_t kMostMaxErrorNm = UINT64_C(104'857'600'000);

/// The largest whole number of nanometres that is no more than `metres`; a decimal number of at most nine places means
/// itself, although binary64 does not hold it exactly. 0 for what is not positive; kMostMaxErrorNm + 1 for more.
inline std::uint64_t nanometres_of(double metres) {
  if (!(metres > 0)) return 0;
  if (metres > 110) return kMostMaxErrorNm + 1;
  const double nearest = std::round(metres * 1e9);
  return static_cast<std::uint64_t>(nearest / 1e9 <= metres ? nearest : nearest - 1);
}

}  // namespace quern::lidar
