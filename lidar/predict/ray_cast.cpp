#include "lidar/predict/ray_cast.h"

#include <algorithm>
#include <optional>

namespace quern::lidar {
namespace {

using kernels::HitPoint;
using kernels::RayHit;
using kernels::RayView;

/// Points on both sides of a ray are of one surface where their ranges differ by no more than so many times their
/// distance in height (ground at 50 m), and 20 cm, and by 2 m at most.
constexpr std::int64_t kFlattest = 32;
constexpr std::int64_t kRough = 2000;
constexpr std::int64_t kMostStep = 20000;
/// Weight of a place between two points.
constexpr std::uint8_t kSure = 3;

bool are_one_surface(const HitPoint& a, const HitPoint& b) {
  const std::int64_t step = a.range < b.range ? b.range - a.range : a.range - b.range;
  return step <= kMostStep && step <= kFlattest * (a.off + b.off) + kRough;
}

/// The place where a ray meets what lies between points on its two sides; nothing where they are not of one surface.
std::optional<HitPoint> place_between(const RayHit& not_above, const RayHit& above) {
  if (!not_above.is_there() || !above.is_there()) return std::nullopt;
  const HitPoint a = RayView::point_of(not_above);
  const HitPoint b = RayView::point_of(above);
  const std::int64_t apart = a.off + b.off;
  if (apart <= 0 || !are_one_surface(a, b)) return std::nullopt;
  const auto between = [&](std::int64_t at_a, std::int64_t at_b) { return (at_a * b.off + at_b * a.off) / apart; };
  return HitPoint{between(a.range, b.range), between(a.x, b.x), between(a.y, b.y), 0};
}

}  // namespace

RayCast::RayCast(const SensorRays& rays) : rays_(rays), table_(rays.step), hits_(view().slots()) {}

void RayCast::add(const UnitPoint& point) {
  RayHit hit;
  const std::size_t slot = view().hit_of(point, hit);
  if (slot != RayView::kNoSlot) hits_[slot] = std::min(hits_[slot], hit);
}

Vector<codec::lidar::PredictedPoint> RayCast::seen() const {
  Vector<codec::lidar::PredictedPoint> points;
  const RayView rays = view();
  for (std::size_t i = 0; i + 1 < hits_.size(); i += 2) {
    const auto see = [&](const HitPoint& at, std::uint8_t weight) {
      const std::size_t ring = i / 2 / rays.columns();
      points.push_back({{at.x, at.y, rays.height_at(ring, at.range)}, weight});
    };
    if (const auto place = place_between(hits_[i], hits_[i + 1])) {
      see(*place, kSure);
      continue;
    }
    for (const RayHit& hit : {hits_[i], hits_[i + 1]})
      if (hit.is_there()) see(RayView::point_of(hit), 1);
  }
  return points;
}

}  // namespace quern::lidar
