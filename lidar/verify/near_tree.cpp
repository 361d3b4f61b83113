// The kd-tree lies in the order of its points: the middle of a range is its root, halves are its branches.
#include "lidar/verify/near_tree.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

namespace quern::lidar {
namespace {

constexpr std::size_t kLeafPoints = 8;

double square(const Position& a, const Position& b) {
  double sum = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) sum += (a[axis] - b[axis]) * (a[axis] - b[axis]);
  return sum;
}

}  // namespace

NearTree::NearTree(Vector<Position> points) : points_(std::move(points)) {
  // Of points at one place one stays: a search must not visit them all.
  std::sort(points_.begin(), points_.end());
  points_.erase(std::unique(points_.begin(), points_.end()), points_.end());
  build(0, points_.size(), 0);
}

void NearTree::build(std::size_t begin, std::size_t end, std::size_t axis) {
  if (end - begin <= kLeafPoints) return;
  const std::size_t middle = begin + (end - begin) / 2;
  const auto at = [&](std::size_t i) { return points_.begin() + static_cast<std::ptrdiff_t>(i); };
  std::nth_element(at(begin), at(middle), at(end),
                   [axis](const Position& a, const Position& b) { return a[axis] < b[axis]; });
  build(begin, middle, (axis + 1) % 3);
  build(middle + 1, end, (axis + 1) % 3);
}

void NearTree::search(std::size_t begin, std::size_t end, std::size_t axis, const Position& point, double& best) const {
  if (end - begin <= kLeafPoints) {
    for (std::size_t i = begin; i < end; ++i) best = std::min(best, square(points_[i], point));
    return;
  }
  const std::size_t middle = begin + (end - begin) / 2;
  best = std::min(best, square(points_[middle], point));
  const double gap = point[axis] - points_[middle][axis];
  const std::size_t next = (axis + 1) % 3;
  const bool is_below = gap < 0;
  if (is_below) {
    search(begin, middle, next, point, best);
    if (gap * gap < best) search(middle + 1, end, next, point, best);
  } else {
    search(middle + 1, end, next, point, best);
    if (gap * gap < best) search(begin, middle, next, point, best);
  }
}

double NearTree::nearest_square(const Position& point) const {
  double best = std::numeric_limits<double>::infinity();
  search(0, points_.size(), 0, point, best);
  return best;
}

}  // namespace quern::lidar
