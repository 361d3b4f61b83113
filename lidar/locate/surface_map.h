// What a history has around a place, as small planes: what a scan is laid upon to find its pose.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "lidar/locate/rigid.h"

namespace quern::lidar {

class SurfaceMap {
 public:
  /// Sides of cubes, metres: coarse ones find a pose from afar, fine ones make it exact.
  static constexpr std::array<double, 3> kSides = {2.0, 1.0, 0.5};

  struct Plane {
    Spot mean{};
    Spot normal{};
    double weight = 0;  ///< 0 to 1: how flat; 0: too few points
  };

  /// Finite points within 1 km of the origin. O(points). May throw std::bad_alloc.
  explicit SurfaceMap(std::span<const Spot> points);

  /// Of the cube that a place lies in; null where it has none.
  const Plane* plane_at(std::size_t level, const Spot& place) const;
  /// Whether a point of the map lies within about 10 cm.
  bool is_near(const Spot& place) const;

 private:
  std::array<std::unordered_map<std::uint64_t, Plane>, kSides.size()> planes_;
  std::unordered_set<std::uint64_t> met_;
};

/// Moves a pose so that the scan's points lie upon planes of the map: point-to-plane least squares with weights that
/// fall with the distance (Chen and Medioni 1991; Cauchy weights), on one level. Returns the pose after at most `rounds`.
Rigid align(const SurfaceMap& map, std::span<const Spot> scan, Rigid pose, std::size_t level, int rounds);

}  // namespace quern::lidar
