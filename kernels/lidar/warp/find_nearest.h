// For each point of one cloud the nearest of another, by warps, over an execution model X: one direction of the check
// whether two clouds lie within a distance of each other. All in whole numbers, and by sums and maxima whose order does
// not matter.
#pragma once

#include "kernels/common/lanes.h"
#include "kernels/lidar/near_grid.h"

namespace quern::kernels {

/// The part of one warp, which goes through runs of 32 points.
template <class X>
class NearestFinder {
 public:
  constexpr NearestFinder() {
    X::lanes([&](auto lane) {
      X::set(largest_, lane, std::uint64_t{0});
      X::set(missing_, lane, std::uint32_t{0});
    });
  }

  /// Points [first, first + 32) of `count`. `nearest` gets the index of the nearest point of each, or
  /// NearestPoint::kNone.
  constexpr void find(const NearGrid& grid, const GridPoint* points, std::uint32_t count, std::uint32_t first,
                      std::uint32_t* nearest) {
    X::lanes([&](auto lane) {
      const std::uint64_t i = first + std::uint64_t{lane};
      if (i >= count) return;
      const NearestPoint found = grid.nearest(points[i], NearestPoint());
      X::store(nearest + i, lane, found.index);
      const bool is_missing = found.index == NearestPoint::kNone;
      const auto square = static_cast<std::uint64_t>(is_missing ? 0 : found.square);
      const std::uint64_t largest = X::get(largest_, lane);
      X::set(largest_, lane, square > largest ? square : largest);
      X::set(missing_, lane, X::get(missing_, lane) + (is_missing ? 1u : 0u));
    });
  }

  /// Adds what was found to what all warps have found.
  constexpr void add_to(NearestCounts& counts) {
    typename X::template vec<std::uint32_t> half;
    X::lanes([&](auto lane) { X::set(half, lane, static_cast<std::uint32_t>(X::get(largest_, lane) >> 32)); });
    const std::uint32_t high = X::reduce_max(half);
    X::lanes([&](auto lane) {
      const std::uint64_t own = X::get(largest_, lane);
      X::set(half, lane, own >> 32 == high ? static_cast<std::uint32_t>(own) : 0u);
    });
    const std::uint64_t largest = std::uint64_t{high} << 32 | X::reduce_max(half);
    const std::uint32_t missing = X::reduce_add(missing_);
    X::lanes([&](auto lane) {
      if (lane != 0) return;
      X::raise_to(&counts.largest_square, lane, largest);
      X::add_to(&counts.missing, lane, missing);
    });
  }

 private:
  typename X::template vec<std::uint64_t> largest_;
  typename X::template vec<std::uint32_t> missing_;
};

}  // namespace quern::kernels
