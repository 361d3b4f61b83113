#include "codecs/lidar/geometry/near_points.h"

#include <algorithm>

namespace quern::codec::lidar {
namespace {

/// Cells around a cell, 9 (dx + 1) + 3 (dy + 1) + (dz + 1): those at faces, then at edges, then at corners.
constexpr std::array<std::uint8_t, 26> kCellOrder = {4,  10, 12, 14, 16, 22, 1, 3, 5, 7,  9,  11, 15,
                                                     17, 19, 21, 23, 25, 0,  2, 6, 8, 18, 20, 24, 26};

}  // namespace

NearPoints::NearPoints(std::span<const FinePoint> points, std::int64_t reach) : side_(reach), most_(reach * reach) {
  std::size_t buckets = 64;
  while (buckets < points.size()) buckets *= 2;
  mask_ = buckets - 1;
  first_.assign(buckets + 1, 0);
  Vector<std::uint32_t> bucket(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    bucket[i] = static_cast<std::uint32_t>(bucket_of(cell(points[i][0]), cell(points[i][1]), cell(points[i][2])));
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
    if (x > side_ || x < -side_ || y > side_ || y < -side_ || z > side_ || z < -side_) continue;
    const std::int64_t square = x * x + y * y + z * z;
    if (square > most_ || square > best.square) continue;
    if (square == best.square && entries_[i].index > best.index) continue;
    best = {square, entries_[i].index};
  }
}

NearPoints::Nearest NearPoints::nearest(const FinePoint& point) const {
  Nearest best;
  FinePoint at;
  for (unsigned axis = 0; axis < 3; ++axis) at[axis] = cell(point[axis]);
  search(bucket_of(at[0], at[1], at[2]), point, best);
  // A cell to the side is no nearer than its face.
  std::array<std::array<std::int64_t, 3>, 3> gap{};
  for (unsigned axis = 0; axis < 3; ++axis) {
    const std::int64_t below = point[axis] - at[axis] * side_;
    gap[axis] = {below * below, 0, (side_ - below) * (side_ - below)};
  }
  for (const std::uint8_t slot : kCellOrder) {
    const unsigned x = slot / 9, y = slot / 3 % 3, z = slot % 3;
    const std::int64_t least = gap[0][x] + gap[1][y] + gap[2][z];
    if (least > most_ || least > best.square) continue;
    search(bucket_of(at[0] + x - 1, at[1] + y - 1, at[2] + z - 1), point, best);
  }
  return best;
}

}  // namespace quern::codec::lidar
