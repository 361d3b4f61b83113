// Distances in exact integers, and a kd-tree over them.
#include "lidar/verify/exact_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

namespace quern::lidar::exact {
namespace {

constexpr int kFraction = 40;

/// The value of a finite binary32 number in units of 2^-40, rounded down.
Exact exact_of(std::uint32_t word, bool is_integer) {
  if (is_integer) return Exact{static_cast<std::int32_t>(word)} << kFraction;
  const std::uint32_t exponent = word >> 23 & 255;
  Exact mantissa = word & 0x7FFFFF;
  if (exponent != 0) mantissa |= 0x800000;
  const int shift = static_cast<int>(exponent == 0 ? 1 : exponent) - 150 + kFraction;
  const bool negative = word >> 31 != 0;
  // Numbers above 2^60 do not matter for a bound: all are put at 2^60.
  if (shift > 76) return negative ? -(Exact{1} << 100) : Exact{1} << 100;
  if (shift >= 0) return negative ? -(mantissa << shift) : mantissa << shift;
  const int down = shift < -127 ? 127 : -shift;
  const Exact kept = mantissa >> down;
  if (!negative) return kept;
  return (kept << down) == mantissa ? -kept : -kept - 1;
}

/// Never below the exact distance, squared, in units of 2^-80; a large number where it is far above any bound.
ExactSquare square_above(const ExactPoint& a, const ExactPoint& b) {
  constexpr Exact kFar = Exact{1} << 62;  // above the largest bound, and three squares fit into 128 bits
  ExactSquare sum = 0;
  for (int axis = 0; axis < 3; ++axis) {
    Exact d = a.at[axis] - b.at[axis];
    if (d < 0) d = -d;
    if (d != 0) d += 1;  // both were rounded; equal ones differ by less than one, which fine units of the codec hold
    d = std::min(d, kFar);
    sum += static_cast<ExactSquare>(d) * static_cast<ExactSquare>(d);
  }
  return sum;
}

/// Largest whole square distance in units of 2^-80 that keeps the bound.
ExactSquare most_square(const Bound& bound) {
  // floor(units * 2^40 / per_metre) squared is not above the exact square.
  const ExactSquare reach = (static_cast<ExactSquare>(bound.units) << kFraction) / bound.per_metre;
  return reach * reach;
}

class Tree {
 public:
  /// Of points at one place one stays: a search must not visit them all.
  explicit Tree(std::vector<ExactPoint> points) : points_(std::move(points)) {
    const auto key = [](const ExactPoint& p) { return std::tie(p.at[0], p.at[1], p.at[2]); };
    std::sort(points_.begin(), points_.end(),
              [&](const ExactPoint& a, const ExactPoint& b) { return key(a) < key(b); });
    points_.erase(std::unique(points_.begin(), points_.end(),
                              [&](const ExactPoint& a, const ExactPoint& b) { return key(a) == key(b); }),
                  points_.end());
    build(0, points_.size(), 0);
  }
  bool has_within(const ExactPoint& point, ExactSquare most, Exact reach) const {
    return find(0, points_.size(), 0, point, most, reach);
  }

 private:
  void build(std::size_t begin, std::size_t end, int axis) {
    if (end - begin < 2) return;
    const std::size_t middle = (begin + end) / 2;
    std::nth_element(points_.begin() + static_cast<std::ptrdiff_t>(begin),
                     points_.begin() + static_cast<std::ptrdiff_t>(middle),
                     points_.begin() + static_cast<std::ptrdiff_t>(end),
                     [axis](const ExactPoint& a, const ExactPoint& b) { return a.at[axis] < b.at[axis]; });
    build(begin, middle, (axis + 1) % 3);
    build(middle + 1, end, (axis + 1) % 3);
  }
  bool find(std::size_t begin, std::size_t end, int axis, const ExactPoint& point, ExactSquare most,
            Exact reach) const {
    if (begin == end) return false;
    const std::size_t middle = (begin + end) / 2;
    if (square_above(points_[middle], point) <= most) return true;
    const Exact gap = point.at[axis] - points_[middle].at[axis];
    const int next = (axis + 1) % 3;
    if (gap <= 0)
      return find(begin, middle, next, point, most, reach) ||
             (-gap <= reach && find(middle + 1, end, next, point, most, reach));
    return find(middle + 1, end, next, point, most, reach) ||
           (gap <= reach && find(begin, middle, next, point, most, reach));
  }

  std::vector<ExactPoint> points_;
};

bool is_finite(std::uint32_t word, bool is_integer) { return is_integer || std::isfinite(std::bit_cast<float>(word)); }

}  // namespace

std::vector<ExactPoint> exact_points(std::span<const std::uint32_t> words, bool is_integer) {
  std::vector<ExactPoint> points;
  for (std::size_t i = 0; i + 2 < words.size(); i += 3) {
    bool finite = true;
    ExactPoint point{};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      finite = finite && is_finite(words[i + axis], is_integer);
      if (finite) point.at[axis] = exact_of(words[i + axis], is_integer);
    }
    if (finite) points.push_back(point);
  }
  return points;
}

std::uint64_t violations(const std::vector<ExactPoint>& from, std::vector<ExactPoint> to, const Bound& bound) {
  const Tree tree(std::move(to));
  const ExactSquare most = most_square(bound);
  const Exact reach = static_cast<Exact>((static_cast<ExactSquare>(bound.units) << kFraction) / bound.per_metre) + 2;
  return static_cast<std::uint64_t>(std::count_if(
      from.begin(), from.end(), [&](const ExactPoint& point) { return !tree.has_within(point, most, reach); }));
}

std::uint64_t pair_violations(std::span<const std::uint32_t> a, std::span<const std::uint32_t> b, bool is_integer,
                              const Bound& bound) {
  if (a.size() != b.size()) return a.size() + b.size();
  std::uint64_t count = 0;
  for (std::size_t i = 0; i + 2 < a.size(); i += 3) {
    if (std::equal(a.begin() + static_cast<std::ptrdiff_t>(i), a.begin() + static_cast<std::ptrdiff_t>(i) + 3,
                   b.begin() + static_cast<std::ptrdiff_t>(i)))
      continue;
    const auto one = exact_points(a.subspan(i, 3), is_integer);
    const auto other = exact_points(b.subspan(i, 3), is_integer);
    if (one.empty() || other.empty() || square_above(one[0], other[0]) > most_square(bound)) ++count;
  }
  return count;
}

}  // namespace quern::lidar::exact
