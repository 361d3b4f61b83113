// Finds the nearest of a set of points within a distance, by a hashed grid of cells of that size. The encoder's own
// check; the tests check with code that shares nothing with this.
#pragma once

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

  /// `reach` is in fine units, at least 1. Keeps a copy of the points. May throw std::bad_alloc.
  NearPoints(std::span<const FinePoint> points, std::int64_t reach);

  /// The nearest point within reach, the lowest index of equals.
  Nearest nearest(const FinePoint& point) const;

 private:
  struct Entry {
    FinePoint point;
    std::uint32_t index;
  };
  std::size_t bucket_of(std::int64_t x, std::int64_t y, std::int64_t z) const {
    std::uint64_t h = static_cast<std::uint64_t>(x) * UINT64_C(0x9E3779B97F4A7C15) +
                      static_cast<std::uint64_t>(y) * UINT64_C(0xC2B2AE3D27D4EB4F) +
                      static_cast<std::uint64_t>(z) * UINT64_C(0x165667B19E3779F9);
    h ^= h >> 32;
    return static_cast<std::size_t>(h) & mask_;
  }
  std::int64_t cell(std::int64_t at) const { return at >= 0 ? at / side_ : -((side_ - 1 - at) / side_); }
  void search(std::size_t bucket, const FinePoint& point, Nearest& best) const;

  std::int64_t side_;
  std::int64_t most_;
  std::size_t mask_ = 0;
  Vector<std::uint32_t> first_;  ///< of each bucket, and the end
  Vector<Entry> entries_;
};

}  // namespace quern::codec::lidar
