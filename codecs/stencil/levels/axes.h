// The axes of a chunk in levels: which points each level has, and in which order its parity classes come. Arithmetic on
// extents only.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace quern::codec::stencil {

inline constexpr std::size_t kMaxAxes = 4;
inline constexpr std::size_t kParityClasses = 16;
inline constexpr std::size_t kMaxLevels = 32;

/// A chunk as up to four axes, slowest first. Level l has the points whose coordinates are multiples of 2^l along
/// every hierarchical axis; a sequential axis, which only the first can be, keeps all its points at every level.
struct LevelAxes {
  std::size_t rank = 1;
  std::array<std::size_t, kMaxAxes> extents{1, 1, 1, 1};
  bool sequential = false;
  bool edges = false;     ///< classes have groups that are not linear
  std::size_t given = 0;  ///< planes of the sequential axis that a decoder has before it reads: 0, or 1 of 2

  bool hierarchical(std::size_t axis) const { return !sequential || axis != 0; }
  /// Planes that are coded one after another.
  std::size_t planes() const { return sequential ? extents[0] : 1; }

  /// The coarsest level: one point along every hierarchical axis.
  unsigned top() const {
    std::size_t most = 1;
    for (std::size_t a = 0; a < rank; ++a)
      if (hierarchical(a)) most = std::max(most, extents[a]);
    return static_cast<unsigned>(std::bit_width(most - 1));
  }
  std::size_t points(std::size_t axis, unsigned level) const {
    return hierarchical(axis) ? ((extents[axis] - 1) >> level) + 1 : extents[axis];
  }
  /// True when level `level` has points that the next coarser one lacks along that axis.
  bool live(std::size_t axis, unsigned level) const { return hierarchical(axis) && points(axis, level) > 1; }

  /// Parity along an axis of the points of a class, in units of the level's distance.
  unsigned parity(std::size_t parity_class, std::size_t axis) const {
    return static_cast<unsigned>(parity_class >> (rank - 1 - axis)) & 1;
  }
  /// True when a level has such points; class 0 are those of the next coarser level.
  bool exists(std::size_t parity_class, unsigned level) const {
    if (parity_class >> rank != 0) return false;
    for (std::size_t a = 0; a < rank; ++a)
      if (parity(parity_class, a) != 0 && !live(a, level)) return false;
    return true;
  }
  /// Points of a class along an axis.
  std::size_t class_points(std::size_t parity_class, unsigned level, std::size_t axis) const {
    const std::size_t n = points(axis, level);
    if (!hierarchical(axis)) return n;
    return parity(parity_class, axis) != 0 ? n / 2 : (n + 1) / 2;
  }
  /// Points that are coded.
  std::size_t elems() const {
    std::size_t n = 1;
    for (const std::size_t e : extents) n *= e;
    return sequential ? n / extents[0] * (extents[0] - given) : n;
  }
};

/// Classes in the order in which they are coded: fewer odd coordinates first, then those odd along slower axes.
constexpr bool class_before(std::size_t a, std::size_t b) {
  const int odd_a = std::popcount(a);
  const int odd_b = std::popcount(b);
  return odd_a != odd_b ? odd_a < odd_b : a > b;
}
constexpr std::array<std::uint8_t, kParityClasses> make_class_order() {
  std::array<std::uint8_t, kParityClasses> order{};
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::size_t place = 0;
    for (std::size_t j = 0; j < order.size(); ++j) place += class_before(j, i) ? 1 : 0;
    order[place] = static_cast<std::uint8_t>(i);
  }
  return order;
}
inline constexpr auto kClassOrder = make_class_order();

/// Whether first planes, or later ones, are coded.
inline bool codes_planes(const LevelAxes& axes, bool later) { return later ? axes.planes() > 1 : axes.given == 0; }

/// The axis that rows of a run follow each other along; kMaxAxes if rows are runs of their own.
inline std::size_t run_axis(const LevelAxes& axes) {
  return axes.rank > 1 && axes.hierarchical(axes.rank - 2) ? axes.rank - 2 : kMaxAxes;
}

/// The classes that a level codes: its new points, or at the top the first ones.
struct CodedClasses {
  std::array<std::uint8_t, kParityClasses> list{};
  std::size_t count = 0;

  CodedClasses(const LevelAxes& axes, unsigned level) {
    if (level == axes.top()) {
      count = 1;
      return;
    }
    for (const std::uint8_t c : kClassOrder)
      if (c != 0 && axes.exists(c, level)) list[count++] = c;
  }
};

}  // namespace quern::codec::stencil
