#include "codecs/lidar/geometry/near_points.h"

#include <algorithm>

#include "codecs/lidar/octree/sensor_view.h"
#include "kernels/common/bits.h"

namespace quern::codec::lidar {

NearPoints::NearPoints(std::span<const FinePoint> points, std::int64_t reach, unsigned fineness)
    : side_bits_(std::max(kernels::bit_length(static_cast<std::uint64_t>(reach)), fineness) - fineness),
      reach_(reach),
      most_(reach * reach) {
  std::size_t buckets = 64;
  while (buckets < points.size()) buckets *= 2;
  mask_ = buckets - 1;
  first_.assign(buckets + 1, 0);
  Vector<std::uint32_t> bucket(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::uint64_t h = 0;
    for (unsigned axis = 0; axis < 3; ++axis) h += part_of(axis, cell(points[i][axis]));
    bucket[i] = static_cast<std::uint32_t>(bucket_of(h));
    ++first_[bucket[i] + 1];
  }
  for (std::size_t i = 0; i < buckets; ++i) first_[i + 1] += first_[i];
  Vector<std::uint32_t> at(first_.begin(), first_.end() - 1);
  entries_.resize(points.size());
  for (std::size_t i = 0; i < points.size(); ++i)
    entries_[at[bucket[i]]++] = {points[i], static_cast<std::uint32_t>(i)};
}

void NearPoints::search(std::size_t bucket, const FinePoint& point, Nearest& best) const {
  for (std::size_t i = first_[bucket]; i < first_[bucket + 1]; ++i) {
    const std::int64_t x = entries_[i].point[0] - point[0];
    const std::int64_t y = entries_[i].point[1] - point[1];
    const std::int64_t z = entries_[i].point[2] - point[2];
    // Differences beyond reach might overflow when squared.
    if (is_beyond(x) || is_beyond(y) || is_beyond(z)) continue;
    const std::int64_t square = x * x + y * y + z * z;
    if (square > most_ || square > best.square) continue;
    if (square == best.square && entries_[i].index > best.index) continue;
    best = {square, entries_[i].index};
  }
}

NearPoints::Nearest NearPoints::nearest(const FinePoint& point, const Nearest& hint) const {
  Nearest best;
  if (hint.square <= most_) best = hint;
  std::array<std::int64_t, 3> own;
  for (unsigned axis = 0; axis < 3; ++axis) own[axis] = cell(point[axis]);
  const std::size_t own_bucket = bucket_of(part_of(0, own[0]) + part_of(1, own[1]) + part_of(2, own[2]));
  search(own_bucket, point, best);
  // No nearer point differs by more than this in any coordinate.
  const std::int64_t within =
      best.square > most_ ? reach_ : static_cast<std::int64_t>(integer_root(static_cast<std::uint64_t>(best.square)));
  struct Slab {
    std::int64_t gap;    ///< the least square of the distance on the axis to what lies in the cells
    std::uint64_t part;  ///< of their place in the hash
  };
  std::array<std::array<Slab, kMostSlabs>, 3> slabs;
  std::array<unsigned, 3> counts{};
  for (unsigned axis = 0; axis < 3; ++axis) {
    const std::int64_t last = cell(point[axis] + within);
    for (std::int64_t at = cell(point[axis] - within); at <= last; ++at) {
      const std::int64_t edge = (at < own[axis] ? at + 1 : at) * (std::int64_t{1} << side_bits_);
      const std::int64_t off = at == own[axis] ? 0 : edge - point[axis];
      slabs[axis][counts[axis]++] = {off * off, part_of(axis, at)};
    }
  }
  for (unsigned x = 0; x < counts[0]; ++x)
    for (unsigned y = 0; y < counts[1]; ++y)
      for (unsigned z = 0; z < counts[2]; ++z) {
        const std::int64_t least = slabs[0][x].gap + slabs[1][y].gap + slabs[2][z].gap;
        if (least > best.square || least > most_) continue;
        const std::size_t bucket = bucket_of(slabs[0][x].part + slabs[1][y].part + slabs[2][z].part);
        if (bucket != own_bucket) search(bucket, point, best);
      }
  return best;
}

}  // namespace quern::codec::lidar
