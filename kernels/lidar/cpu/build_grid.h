// A hashed grid built by one thread of a CPU: points sorted by their buckets, in the order that they have.
#pragma once

#include <span>

#include "kernels/lidar/near_grid.h"

namespace quern::kernels {

/// `begins`: buckets + 1 zeros; they become the first entry of each bucket and, last, their number. `next`: as many as
/// buckets, `bucket`: as many as points, scratch. Fewer than 2^32 points.
inline void build_grid(const GridCells& cells, std::span<const GridPoint> points, std::span<std::uint32_t> begins,
                       std::span<std::uint32_t> next, std::span<std::uint32_t> bucket, std::span<GridEntry> entries) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    bucket[i] = cells.bucket_of(points[i]);
    ++begins[bucket[i] + std::size_t{1}];
  }
  for (std::size_t i = 0; i < next.size(); ++i) {
    begins[i + 1] += begins[i];
    next[i] = begins[i];
  }
  for (std::size_t i = 0; i < points.size(); ++i)
    entries[next[bucket[i]]++] = {points[i], static_cast<std::uint32_t>(i)};
}

}  // namespace quern::kernels
