// Points of a map projected onto the rays of a sensor by warps, over an execution model X, in two steps, the second
// after all of the first: the least first key of each slot, and of the points that have it the least second key.
#pragma once

#include "kernels/common/lanes.h"
#include "kernels/lidar/ray_hits.h"

namespace quern::kernels {

/// What is projected: points, moved into the sensor's coordinates.
struct ProjectedCloud {
  const GridPoint* points = nullptr;
  std::uint64_t count = 0;
  RigidMove move;
};

enum class ProjectionStep : std::uint8_t { first_keys, second_keys };

/// Points [first, first + 32). `hits`: of all slots, none to begin with.
template <class X, ProjectionStep Step>
constexpr void project_points(const ProjectedCloud& cloud, const RayView& rays, std::uint64_t first, RayHit* hits) {
  X::lanes([&](auto lane) {
    const std::uint64_t i = first + lane;
    GridPoint point{};
    if (i >= cloud.count || !cloud.move(cloud.points[i], point)) return;
    RayHit hit;
    const std::size_t slot = rays.hit_of(point, hit);
    if (slot == RayView::kNoSlot) return;
    if constexpr (Step == ProjectionStep::first_keys) {
      X::lower_to(&hits[slot].first, lane, hit.first);
    } else {
      if (hits[slot].first == hit.first) X::lower_to(&hits[slot].second, lane, hit.second);
    }
  });
}

}  // namespace quern::kernels
