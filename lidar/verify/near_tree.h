// A kd-tree in binary64: the distance to the nearest of its points.
#pragma once

#include <array>
#include <cstddef>

#include <quern/memory.h>

namespace quern::lidar {

using Position = std::array<double, 3>;

/// Immutable; may be asked from several threads at once.
class NearTree {
 public:
  /// Finite points. O(n log n).
  explicit NearTree(Vector<Position> points);
  bool is_empty() const { return points_.empty(); }
  /// The squared distance to the nearest point; infinity where there is none. O(log n) for points near the tree's.
  double nearest_square(const Position& point) const;

 private:
  void build(std::size_t begin, std::size_t end, std::size_t axis);
  void search(std::size_t begin, std::size_t end, std::size_t axis, const Position& point, double& best) const;

  Vector<Position> points_;
};

}  // namespace quern::lidar
