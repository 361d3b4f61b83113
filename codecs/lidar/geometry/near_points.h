// Finds the nearest of a set of points within a distance, by a hashed grid. The encoder's own check; the tests check
// with code that shares nothing with this.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/lidar/geometry/fine_points.h"

namespace quern::codec::lidar {

class NearPoints {
 public:
  struct Nearest {
    std::int64_t square = INT64_MAX;  ///< of the distance; INT64_MAX where none is within reach
    std::uint32_t index = UINT32_MAX;
  };

  static constexpr unsigned kMostFineness = 2;

  /// `reach` is in fine units, at least 1. Cells have a side of 2^-fineness of the power of two above it: smaller ones
  /// pay where points are dense and searches begin with a hint. At most kMostFineness. Keeps a copy of the points. May
  /// throw std::bad_alloc.
  NearPoints(std::span<const FinePoint> points, std::int64_t reach, unsigned fineness);

  /// The nearest point within reach, the lowest index of equals. `hint`: one of the points that may be near, and is not
  /// the nearest if `square`, the distance to it, is beyond reach. It changes the time alone.
  Nearest nearest(const FinePoint& point, const Nearest& hint) const;
  Nearest nearest(const FinePoint& point) const { return nearest(point, Nearest()); }

 private:
  /// Cells that a distance to both sides can touch on an axis: the side is more than a quarter of the reach.
  static constexpr unsigned kMostSlabs = 10;

  struct Entry {
    FinePoint point;
    std::uint32_t index;
  };
  /// A cell's place in the hash, the sum of what each of its coordinates adds.
  static std::uint64_t part_of(unsigned axis, std::int64_t cell) {
    constexpr std::array<std::uint64_t, 3> kFactors = {UINT64_C(0x9E3779B97F4A7C15), UINT64_C(0xC2B2AE3D27D4EB4F),
                                                       UINT64_C(0x165667B19E3779F9)};
    return static_cast<std::uint64_t>(cell) * kFactors[axis];
  }
  std::size_t bucket_of(std::uint64_t h) const { return static_cast<std::size_t>(h ^ h >> 32) & mask_; }
  std::int64_t cell(std::int64_t at) const { return at >> side_bits_; }
  bool is_beyond(std::int64_t difference) const {
    return static_cast<std::uint64_t>(difference + reach_) > 2 * static_cast<std::uint64_t>(reach_);
  }
  void search(std::size_t bucket, const FinePoint& point, Nearest& best) const;

  unsigned side_bits_;
  std::int64_t reach_;
  std::int64_t most_;
  std::size_t mask_ = 0;
  Vector<std::uint32_t> first_;  ///< of each bucket, and the end
  Vector<Entry> entries_;
};

}  // namespace quern::codec::lidar
