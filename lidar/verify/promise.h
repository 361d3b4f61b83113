// Whether a decoded cloud keeps what its frame promised of the original. Shares nothing with the codec.
#pragma once

#include <cstdint>

#include <quern/execution.h>
#include <quern/status.h>

#include "lidar/cloud/point_cloud.h"
#include "lidar/verify/distances.h"

namespace quern::lidar {

enum class PromiseKind : std::uint8_t {
  set,     ///< each point has one of the other cloud within the bound, in both directions
  points,  ///< each point within the bound of its namesake, attributes bit for bit
  exact,   ///< every bit
};

struct Promise {
  PromiseKind kind = PromiseKind::set;
  double bound = 0;         ///< metres
  std::uint64_t units = 0;  ///< the bound in steps of the coordinates: 0.1 mm for f32, the scale for scaled
};

struct PromiseCheck {
  std::uint64_t violations = 0;         ///< points that miss the bound, in either direction
  std::uint64_t attribute_changes = 0;  ///< kinds points and exact: points whose attributes differ
  bool same_points = true;              ///< kinds points and exact: as many points, of the same type
  CloudDistances distances;             ///< nearest neighbours; of kind points they may be below those of namesakes
  double max_pair_distance = 0;         ///< kinds points and exact: between namesakes that are finite
  bool passed() const { return violations == 0 && attribute_changes == 0 && same_points; }
};

/// Points with NaN or infinity are left out of kind set; of the others they must come back bit for bit. binary32
/// against binary32, and numbers of one grid, are compared in exact integers; other pairs of types in binary64.
Result<PromiseCheck> check_promise(const PointCloud& original, const PointCloud& decoded, const Promise& promise,
                                   TaskRunner& runner);

}  // namespace quern::lidar
