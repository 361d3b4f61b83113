// A hashed grid built by warps, each of which takes 32 points or 32 buckets at a time, over an execution model X. Three
// steps, each after all of the one before: points counted by bucket; entries given to buckets; points put into them.
// Which entries a bucket gets, and the order in it, depend on the order of warps, what a search finds does not.
#pragma once

#include "kernels/common/lanes.h"
#include "kernels/lidar/near_grid.h"

namespace quern::kernels {

/// A grid while it is built.
struct GridRoom {
  GridCells cells;
  const GridPoint* points = nullptr;
  std::uint32_t count = 0;
  std::uint32_t* begins = nullptr;  ///< of each bucket; zeros to begin with, then the number of its points
  std::uint32_t* ends = nullptr;    ///< of each bucket, where its next entry goes
  std::uint32_t* given = nullptr;   ///< entries that buckets have; zero to begin with
  GridEntry* entries = nullptr;

  constexpr NearGrid grid() const { return {cells, begins, ends, entries}; }
};

/// Points [first, first + 32).
template <class X>
constexpr void count_points(const GridRoom& room, std::uint32_t first) {
  X::lanes([&](auto lane) {
    const std::uint64_t i = first + std::uint64_t{lane};
    if (i < room.count) X::add_to(room.begins + room.cells.bucket_of(room.points[i]), lane, 1u);
  });
}

/// Buckets [first, first + 32), which exist.
template <class X>
constexpr void give_entries(const GridRoom& room, std::uint32_t first) {
  typename X::template vec<std::uint32_t> count, before, base;
  X::lanes([&](auto lane) {
    const std::uint32_t points = X::load(room.begins + first + lane, lane);
    X::set(count, lane, points);
    X::set(before, lane, points);
  });
  X::exclusive_scan(before);
  const std::uint32_t all = X::reduce_add(count);
  X::lanes([&](auto lane) { X::set(base, lane, lane == 0 ? X::fetch_add(room.given, lane, all) : 0u); });
  const std::uint32_t start = X::broadcast(base, 0);
  X::lanes([&](auto lane) {
    X::store(room.begins + first + lane, lane, start + X::get(before, lane));
    X::store(room.ends + first + lane, lane, start + X::get(before, lane));
  });
}

/// Points [first, first + 32).
template <class X>
constexpr void put_points(const GridRoom& room, std::uint32_t first) {
  X::lanes([&](auto lane) {
    const std::uint64_t i = first + std::uint64_t{lane};
    if (i >= room.count) return;
    const GridPoint point = room.points[i];
    const std::uint32_t at = X::fetch_add(room.ends + room.cells.bucket_of(point), lane, 1u);
    X::store(room.entries + at, lane, GridEntry{point, static_cast<std::uint32_t>(i)});
  });
}

}  // namespace quern::kernels
