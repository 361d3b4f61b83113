#include "lidar/predict/ray_cast.h"

#include <algorithm>

#include "kernels/common/bits.h"

namespace quern::lidar {
namespace {

constexpr std::int64_t kNearest = 10000;  ///< units; what lies nearer is the vehicle
/// Points that miss a ray by at most this may be on it, in units of 2^-16 of their range; more where rings lie apart.
constexpr std::int64_t kMostMiss = 230;
/// What a doubled range costs, as a third of a miss: of points beside each other the nearer one hides the other.
constexpr std::int64_t kRangeCost = 8;
/// Points on both sides of a ray are of one surface where their ranges differ by no more than so many times their
/// distance in height (ground at 50 m), and 20 cm, and by 2 m at most.
constexpr std::int64_t kFlattest = 32;
constexpr std::int64_t kRough = 2000;
constexpr std::int64_t kMostStep = 20000;
/// Weight of a place between two points.
constexpr std::uint8_t kSure = 3;

}  // namespace

RayCast::RayCast(const SensorRays& rays)
    : rays_(rays),
      table_(rays.step),
      columns_(static_cast<std::size_t>(2 * table_.most() + 1)),
      hits_(columns_ * rays.rings.size()) {}

/// Half the gap to the ring on that side; beyond the outermost, as on their other side.
std::int64_t RayCast::most_miss(std::size_t ring, bool above) const {
  const std::size_t last = rays_.rings.size() - 1;
  if (last == 0) return kMostMiss;
  const std::size_t lower = above ? std::min(ring, last - 1) : std::max<std::size_t>(ring, 1) - 1;
  return std::max<std::int64_t>((rays_.rings[lower + 1].slope - rays_.rings[lower].slope) / 2, kMostMiss);
}

bool RayCast::are_one_surface(const Hit& a, const Hit& b) {
  if (!a.is_there() || !b.is_there()) return false;
  const std::int64_t step = a.range < b.range ? b.range - a.range : a.range - b.range;
  return step <= kMostStep && step <= kFlattest * (std::int64_t{a.off} + b.off) + kRough;
}

void RayCast::add(const UnitPoint& point) {
  const auto [x, y, z] = point;
  const auto range = static_cast<std::int64_t>(codec::lidar::integer_root(static_cast<std::uint64_t>(x * x + y * y)));
  if (range < kNearest || range > Move::kMostUnits) return;
  std::size_t below = 0;
  std::size_t above = rays_.rings.size();
  while (above - below > 1) {
    const std::size_t middle = (below + above) / 2;
    // Which way is as good as random: choosing values is faster than branching.
    const bool is_above = height_at(middle, range) <= z;
    below = is_above ? middle : below;
    above = is_above ? above : middle;
  }
  const auto off = [&](std::size_t ring) {
    const std::int64_t miss = z - height_at(ring, range);
    return miss < 0 ? -miss : miss;
  };
  if (above < rays_.rings.size() && off(above) < off(below)) below = above;
  const std::int64_t miss = (off(below) << 16) / range;
  if (miss > most_miss(below, z > height_at(below, range))) return;
  const auto cubed = static_cast<std::uint64_t>(range * range) * static_cast<std::uint64_t>(range);
  const std::int64_t score = miss + kRangeCost * kernels::bit_length(cubed);
  const auto column = static_cast<std::size_t>(table_.nearest(x, y) + table_.most());
  Hit& hit = hits_[below * columns_ + column][z > height_at(below, range) ? 1 : 0];
  hit = std::min(hit,
                 Hit{static_cast<std::int32_t>(score), static_cast<std::int32_t>(range), static_cast<std::int32_t>(x),
                     static_cast<std::int32_t>(y), static_cast<std::int32_t>(off(below))});
}

Vector<codec::lidar::PredictedPoint> RayCast::seen() const {
  Vector<codec::lidar::PredictedPoint> points;
  for (std::size_t i = 0; i < hits_.size(); ++i) {
    const auto& [below, above] = hits_[i];
    const auto see = [&](std::int64_t x, std::int64_t y, std::int64_t range, std::uint8_t weight) {
      points.push_back({{x, y, height_at(i / columns_, range)}, weight});
    };
    const std::int64_t apart = std::int64_t{below.off} + above.off;
    if (apart > 0 && are_one_surface(below, above)) {
      const auto between = [&](std::int64_t a, std::int64_t b) { return (a * above.off + b * below.off) / apart; };
      see(between(below.x, above.x), between(below.y, above.y), between(below.range, above.range), kSure);
      continue;
    }
    for (const Hit& hit : hits_[i])
      if (hit.is_there()) see(hit.x, hit.y, hit.range, 1);
  }
  return points;
}

}  // namespace quern::lidar
