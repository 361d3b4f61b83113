// How far two clouds are apart: the distance of each point to the nearest of the other cloud, and what is made of
// those. Shares nothing with the codec.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/execution.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "lidar/cloud/point_cloud.h"

namespace quern::lidar {

/// Distances of one direction, over finite points, in metres (binary64).
struct DistanceSummary {
  std::uint64_t points = 0;  ///< finite ones; without any, all figures are 0
  double max = 0;
  double mean = 0;
  double rms = 0;
  double median = 0;
  double p99 = 0;
  std::uint64_t worst_point = 0;
};

/// Both directions between clouds A and B.
struct CloudDistances {
  Vector<double> a_to_b;  ///< by point of A; NaN for points that are not finite, infinity where B has no finite point
  Vector<double> b_to_a;
  DistanceSummary forward;   ///< of a_to_b
  DistanceSummary backward;  ///< of b_to_a
  /// Mean of both directions' means.
  double chamfer() const { return (forward.mean + backward.mean) / 2; }
  /// MPEG's D1: 10 log10(3 p^2 / e), p the longest side of A's box, e the larger mean square. Infinity for e = 0.
  double d1_psnr_db = 0;
};

/// O(n log n) by a kd-tree. Results do not depend on `runner`. Fails when memory runs out.
Result<CloudDistances> measure_distances(const PointCloud& a, const PointCloud& b, TaskRunner& runner);

/// The share of distances within `bound`, of those that are not NaN; 1 where there are none.
double share_within(std::span<const double> distances, double bound);

}  // namespace quern::lidar
