// Nearest neighbours in both directions, and figures over them in the order of the points.
#include "lidar/verify/distances.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "libcompress/core/run_tasks.h"
#include "lidar/verify/near_tree.h"

namespace quern::lidar {
namespace {

constexpr std::uint64_t kPointsOfTask = 4096;

Vector<Position> finite_positions(const PointCloud& cloud) {
  Vector<Position> out;
  out.reserve(static_cast<std::size_t>(cloud.points()));
  for (std::uint64_t i = 0; i < cloud.points(); ++i)
    if (cloud.is_finite(i)) out.push_back(cloud.position(i));
  return out;
}

Result<Vector<double>> distances_to(const NearTree& tree, const PointCloud& from, TaskRunner& runner) {
  Vector<double> out(static_cast<std::size_t>(from.points()), std::numeric_limits<double>::quiet_NaN());
  const std::uint64_t tasks = (from.points() + kPointsOfTask - 1) / kPointsOfTask;
  QUERN_RETURN_IF_ERROR(run_tasks(runner, static_cast<std::size_t>(tasks), [&](std::size_t task) -> Status {
    const std::uint64_t end = std::min(from.points(), (task + 1) * kPointsOfTask);
    for (std::uint64_t i = task * kPointsOfTask; i < end; ++i)
      if (from.is_finite(i)) out[static_cast<std::size_t>(i)] = std::sqrt(tree.nearest_square(from.position(i)));
    return {};
  }));
  return out;
}

double quantile(const Vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

DistanceSummary summarize(const Vector<double>& distances) {
  DistanceSummary out;
  Vector<double> sorted;
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < distances.size(); ++i) {
    const double d = distances[i];
    if (std::isnan(d)) continue;
    if (sorted.empty() || d > out.max) {
      out.max = d;
      out.worst_point = i;
    }
    sorted.push_back(d);
    sum += d;
    squares += d * d;
  }
  out.points = sorted.size();
  if (sorted.empty()) return out;
  const auto count = static_cast<double>(sorted.size());
  out.mean = sum / count;
  out.rms = std::sqrt(squares / count);
  std::sort(sorted.begin(), sorted.end());
  out.median = quantile(sorted, 0.5);
  out.p99 = quantile(sorted, 0.99);
  return out;
}

double longest_side(const Vector<Position>& points) {
  double longest = 0;
  for (std::size_t axis = 0; axis < 3 && !points.empty(); ++axis) {
    const auto [low, high] = std::minmax_element(
        points.begin(), points.end(), [axis](const Position& a, const Position& b) { return a[axis] < b[axis]; });
    longest = std::max(longest, (*high)[axis] - (*low)[axis]);
  }
  return longest;
}

}  // namespace

double share_within(std::span<const double> distances, double bound) {
  std::uint64_t all = 0;
  std::uint64_t within = 0;
  for (const double d : distances) {
    if (std::isnan(d)) continue;
    ++all;
    within += d <= bound ? 1 : 0;
  }
  return all == 0 ? 1 : static_cast<double>(within) / static_cast<double>(all);
}

Result<CloudDistances> measure_distances(const PointCloud& a, const PointCloud& b, TaskRunner& runner) {
  CloudDistances out;
  Vector<Position> of_a = finite_positions(a);
  const double peak = longest_side(of_a);
  {
    const NearTree tree(finite_positions(b));
    QUERN_ASSIGN_OR_RETURN(out.a_to_b, distances_to(tree, a, runner));
  }
  const NearTree tree(std::move(of_a));
  QUERN_ASSIGN_OR_RETURN(out.b_to_a, distances_to(tree, b, runner));
  out.forward = summarize(out.a_to_b);
  out.backward = summarize(out.b_to_a);
  const double rms = std::max(out.forward.rms, out.backward.rms);
  out.d1_psnr_db =
      rms == 0 ? std::numeric_limits<double>::infinity() : 10 * std::log10(3 * (peak / rms) * (peak / rms));
  return out;
}

}  // namespace quern::lidar
