// Points projected onto the rays of a spinning sensor. Each ray keeps two points, the best one not above it and the
// best one above. Which point is the best is decided by two keys of 64 bits, so that threads find it by two atomic
// minima, one after the other, in any order.
//
//   first key    score (32 bits) | range (32)
//   second key   x (23) | y (23) | what the first key leaves of the distance in height (18)
//
// The second key is of those with the least first.
//
// Lengths are units of 0.1 mm, within RigidMove::kMostUnits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/integer_root.h"
#include "kernels/lidar/rigid_move.h"
#include "kernels/lidar/step_search.h"

namespace quern::kernels {

/// A laser's returns lie at z = height + slope * distance from the axis.
struct RayRing {
  std::int32_t slope = 0;   ///< units of 2^-16, within +-2^20
  std::int32_t height = 0;  ///< within +-2^20

  bool operator==(const RayRing&) const = default;
};

/// The best point of a side of a ray.
struct RayHit {
  static constexpr std::uint64_t kNone = UINT64_MAX;

  std::uint64_t first = kNone;
  std::uint64_t second = kNone;

  constexpr bool is_there() const { return first != kNone; }
  friend constexpr bool operator<(const RayHit& a, const RayHit& b) {
    return a.first != b.first ? a.first < b.first : a.second < b.second;
  }
};

/// What a hit's keys say.
struct HitPoint {
  std::int64_t range = 0;
  std::int64_t x = 0;
  std::int64_t y = 0;
  std::int64_t off = 0;  ///< height between the point and the ray
};

/// The rays, in somebody's memory.
struct RayView {
  static constexpr std::size_t kNoSlot = SIZE_MAX;

  const RayRing* rings = nullptr;  ///< slopes rise
  std::size_t ring_count = 0;      ///< at least 1
  StepSearch steps;

  constexpr std::size_t columns() const { return 2 * steps.size - 1; }
  /// Slots for hits, two for each ray, ring after ring: not above it; above it.
  constexpr std::size_t slots() const { return 2 * ring_count * columns(); }
  constexpr std::int64_t height_at(std::size_t ring, std::int64_t range) const {
    return rings[ring].height + (rings[ring].slope * range >> 16);
  }

  /// The slot that a point falls into and its keys; kNoSlot where it meets no ray.
  constexpr std::size_t hit_of(const GridPoint& point, RayHit& hit) const {
    const std::int64_t x = point[0];
    const std::int64_t y = point[1];
    const std::int64_t z = point[2];
    const auto range = static_cast<std::int64_t>(integer_root(static_cast<std::uint64_t>(x * x + y * y)));
    if (range < kNearest || range > RigidMove::kMostUnits) return kNoSlot;
    std::size_t below = 0;
    std::size_t above = ring_count;
    while (above - below > 1) {
      const std::size_t middle = (below + above) / 2;
      // Which way is as good as random: choosing values is faster than branching.
      const bool is_above = height_at(middle, range) <= z;
      below = is_above ? middle : below;
      above = is_above ? above : middle;
    }
    std::int64_t off = distance(z, height_at(below, range));
    if (above < ring_count && distance(z, height_at(above, range)) < off) {
      below = above;
      off = distance(z, height_at(above, range));
    }
    const bool is_above = z > height_at(below, range);
    const std::int64_t miss = (off << 16) / range;
    if (miss > most_miss(below, is_above)) return kNoSlot;
    const std::int64_t score = miss + range_cost(range);
    hit.first = static_cast<std::uint64_t>(score) << 32 | static_cast<std::uint64_t>(range);
    hit.second = static_cast<std::uint64_t>(x + RigidMove::kMostUnits) << (kSideBits + kRestBits) |
                 static_cast<std::uint64_t>(y + RigidMove::kMostUnits) << kRestBits |
                 static_cast<std::uint64_t>(off - least_off(miss, range));
    const auto column = static_cast<std::size_t>(steps.nearest(x, y) + static_cast<std::int64_t>(steps.size) - 1);
    return 2 * (below * columns() + column) + (is_above ? 1 : 0);
  }

  /// Of a hit that is there.
  static constexpr HitPoint point_of(const RayHit& hit) {
    constexpr std::uint64_t kSide = (UINT64_C(1) << kSideBits) - 1;
    HitPoint point;
    point.range = static_cast<std::int64_t>(hit.first & 0xffffffffU);
    point.x = static_cast<std::int64_t>(hit.second >> (kSideBits + kRestBits)) - RigidMove::kMostUnits;
    point.y = static_cast<std::int64_t>(hit.second >> kRestBits & kSide) - RigidMove::kMostUnits;
    const std::int64_t miss = static_cast<std::int64_t>(hit.first >> 32) - range_cost(point.range);
    point.off = least_off(miss, point.range) + static_cast<std::int64_t>(hit.second & ((UINT64_C(1) << kRestBits) - 1));
    return point;
  }

 private:
  static constexpr std::int64_t kNearest = 10000;  ///< what lies nearer is the vehicle
  /// Points that miss a ray by at most this may be on it, in units of 2^-16 of their range; more where rings lie apart.
  static constexpr std::int64_t kMostMiss = 230;
  /// What a doubled range costs, as a third of a miss: of points beside each other the nearer one hides the other.
  static constexpr std::int64_t kRangeCost = 8;
  static constexpr unsigned kSideBits = 23;
  static constexpr unsigned kRestBits = 18;

  static constexpr std::int64_t distance(std::int64_t a, std::int64_t b) { return a < b ? b - a : a - b; }
  static constexpr std::int64_t range_cost(std::int64_t range) {
    const auto cubed = static_cast<std::uint64_t>(range * range) * static_cast<std::uint64_t>(range);
    return kRangeCost * bit_length(cubed);
  }
  /// The least distance in height that misses by as much: above it a rest of at most range / 2^16 + 1.
  static constexpr std::int64_t least_off(std::int64_t miss, std::int64_t range) {
    return (miss * range + 0xffff) >> 16;
  }
  /// Half the gap to the ring on that side; beyond the outermost, as on their other side.
  constexpr std::int64_t most_miss(std::size_t ring, bool above) const {
    const std::size_t last = ring_count - 1;
    if (last == 0) return kMostMiss;
    std::size_t lower = ring;
    if (above && lower == last) --lower;
    if (!above && lower > 0) --lower;
    const std::int64_t half = (std::int64_t{rings[lower + 1].slope} - rings[lower].slope) / 2;
    return half > kMostMiss ? half : kMostMiss;
  }
};

}  // namespace quern::kernels
