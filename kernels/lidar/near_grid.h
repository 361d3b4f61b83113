// The nearest of a set of points within a distance, by a hashed grid over their coordinates, which are whole numbers
// within 2^60. The order of points in a bucket does not matter, so a grid may be built by threads in any order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/integer_root.h"

namespace quern::kernels {

using GridPoint = std::array<std::int64_t, 3>;

struct NearestPoint {
  std::int64_t square = INT64_MAX;   ///< of the distance; INT64_MAX where none is within reach
  std::uint32_t index = UINT32_MAX;  ///< the lowest of equally near ones

  static constexpr std::uint32_t kNone = UINT32_MAX;
};

/// What a check counts; all zero to begin with.
struct NearestCounts {
  std::uint64_t largest_square = 0;  ///< of the distances to nearest points
  std::uint32_t missing = 0;         ///< points without one
};

/// How space is cut into cells, and cells are spread over buckets.
struct GridCells {
  static constexpr unsigned kMostFineness = 2;
  static constexpr std::uint64_t kLeastBuckets = 64;
  static constexpr std::int64_t kMostReach = INT64_C(1) << 30;  ///< three of its squares fit into 63 bits

  std::int64_t reach = 1;
  std::uint64_t mask = 0;  ///< buckets - 1
  unsigned side_bits = 0;

  constexpr GridCells() = default;
  /// For `points` points and searches within `distance`, from 1 to kMostReach. Cells have a side of 2^-fineness of
  /// the power of two above it: smaller ones pay where points are dense and searches begin with a hint. At most
  /// kMostFineness.
  constexpr GridCells(std::uint64_t points, std::int64_t distance, unsigned fineness) : reach(distance) {
    const unsigned bits = bit_length(static_cast<std::uint64_t>(distance));
    side_bits = bits > fineness ? bits - fineness : 0;
    std::uint64_t count = kLeastBuckets;
    while (count < points) count *= 2;
    mask = count - 1;
  }

  constexpr std::uint64_t buckets() const { return mask + 1; }
  constexpr std::int64_t cell(std::int64_t at) const { return at >> side_bits; }
  /// A cell's place in the hash is the sum of what each of its coordinates adds.
  static constexpr std::uint64_t part_of(unsigned axis, std::int64_t cell) {
    const std::uint64_t factor = axis == 0   ? UINT64_C(0x9E3779B97F4A7C15)
                                 : axis == 1 ? UINT64_C(0xC2B2AE3D27D4EB4F)
                                             : UINT64_C(0x165667B19E3779F9);
    return static_cast<std::uint64_t>(cell) * factor;
  }
  constexpr std::uint32_t bucket(std::uint64_t hash) const {
    return static_cast<std::uint32_t>((hash ^ hash >> 32) & mask);
  }
  constexpr std::uint32_t bucket_of(const GridPoint& point) const {
    return bucket(part_of(0, cell(point[0])) + part_of(1, cell(point[1])) + part_of(2, cell(point[2])));
  }
};

struct GridEntry {
  GridPoint point;
  std::uint32_t index;
};

/// A built grid, in somebody's memory.
struct NearGrid {
  GridCells cells;
  const std::uint32_t* begins = nullptr;  ///< of each bucket, its first entry
  const std::uint32_t* ends = nullptr;    ///< of each bucket, the entry behind its last
  const GridEntry* entries = nullptr;

  /// The nearest point within reach. `hint`: one of the points that may be near, and is not the nearest if `square`,
  /// the distance to it, is beyond reach. It changes the time alone.
  [[gnu::always_inline]] constexpr NearestPoint nearest(const GridPoint& point, const NearestPoint& hint) const {
    // As if there were a point just within reach, of the highest index.
    NearestPoint best{cells.reach * cells.reach, NearestPoint::kNone};
    if (hint.square <= best.square) best = hint;
    const std::uint32_t own = cells.bucket_of(point);
    search(own, point, best);
    // No nearer point differs by more than this in any coordinate.
    const auto within = static_cast<std::int64_t>(integer_root(static_cast<std::uint64_t>(best.square)));
    each_slab(0, point[0], within, [&](std::int64_t x_gap, std::uint64_t x_part) {
      each_slab(1, point[1], within, [&](std::int64_t y_gap, std::uint64_t y_part) {
        const std::int64_t gap = x_gap + y_gap;
        if (gap > best.square) return;
        each_slab(2, point[2], within, [&](std::int64_t z_gap, std::uint64_t z_part) {
          if (gap + z_gap > best.square) return;
          const std::uint32_t bucket = cells.bucket(x_part + y_part + z_part);
          if (bucket != own) search(bucket, point, best);
        });
      });
    });
    return best.index == NearestPoint::kNone ? NearestPoint() : best;
  }

 private:
  /// Calls visit(gap, part) for the cells on an axis that lie at most `within` from `at`: the least square of the
  /// distance on the axis to what lies in a cell, and its part of the hash.
  template <class Visit>
  [[gnu::always_inline]] constexpr void each_slab(unsigned axis, std::int64_t at, std::int64_t within,
                                                  const Visit& visit) const {
    const std::int64_t own = cells.cell(at);
    const std::int64_t last = cells.cell(at + within);
    for (std::int64_t cell = cells.cell(at - within); cell <= last; ++cell) {
      const std::int64_t edge = (cell < own ? cell + 1 : cell) * (INT64_C(1) << cells.side_bits);
      const std::int64_t off = cell == own ? 0 : edge - at;
      visit(off * off, GridCells::part_of(axis, cell));
    }
  }
  [[gnu::always_inline]] constexpr bool is_beyond(std::int64_t difference) const {
    return static_cast<std::uint64_t>(difference + cells.reach) > 2 * static_cast<std::uint64_t>(cells.reach);
  }
  [[gnu::always_inline]] constexpr void search(std::uint32_t bucket, const GridPoint& point, NearestPoint& best) const {
    const std::uint32_t end = ends[bucket];
    for (std::uint32_t i = begins[bucket]; i < end; ++i) {
      const GridEntry& entry = entries[i];
      const std::int64_t x = entry.point[0] - point[0];
      const std::int64_t y = entry.point[1] - point[1];
      const std::int64_t z = entry.point[2] - point[2];
      // Differences beyond reach might overflow when squared.
      if (is_beyond(x) || is_beyond(y) || is_beyond(z)) continue;
      const std::int64_t square = x * x + y * y + z * z;
      if (square > best.square) continue;
      if (square == best.square && entry.index > best.index) continue;
      best = {square, entry.index};
    }
  }
};

}  // namespace quern::kernels
