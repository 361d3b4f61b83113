// Unit vectors in the plane as integers, and turns between them.
#pragma once

#include <array>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/lidar/octree/sensor_view.h"

namespace quern::codec::lidar {

inline constexpr unsigned kDirectionBits = 30;
inline constexpr std::int64_t kOne = INT64_C(1) << kDirectionBits;

/// Cosine and sine in units of 2^-30. As long as one, up to a few units.
struct Direction {
  std::int64_t x = kOne;
  std::int64_t y = 0;
};

/// The direction of a vector of components of at most 2^31; x where it is too short to have one.
inline Direction direction_of(std::int64_t x, std::int64_t y) {
  const std::uint64_t length = integer_root(static_cast<std::uint64_t>(x * x) + static_cast<std::uint64_t>(y * y));
  if (length == 0) return {};
  const auto whole = static_cast<std::int64_t>(length);
  return {x * kOne / whole, y * kOne / whole};
}

/// `a`, turned by the angle of `b`, and of unit length again.
inline Direction turned(const Direction& a, const Direction& b) {
  return direction_of((a.x * b.x - a.y * b.y) >> kDirectionBits, (a.x * b.y + a.y * b.x) >> kDirectionBits);
}

/// The directions 0, 1, 2, ... steps from x, up to half a turn.
class StepTable {
 public:
  static constexpr std::size_t kMost = 8192;

  /// `step` turns by more than 0 and at most a quarter. May throw std::bad_alloc.
  explicit StepTable(const Direction& step) {
    Direction at;
    do {
      table_.push_back(at);
      at = turned(at, step);
    } while (at.y > 0 && table_.size() < kMost);
    std::size_t start = 0;
    for (std::size_t i = 0; i < table_.size(); ++i)
      for (const std::size_t own = start_of(table_[i].x, table_[i].y); start <= own; ++start)
        starts_[start] = static_cast<std::uint16_t>(i);
    for (; start < starts_.size(); ++start) starts_[start] = static_cast<std::uint16_t>(table_.size() - 1);
  }

  /// Most steps to either side.
  std::int64_t most() const { return static_cast<std::int64_t>(table_.size()) - 1; }
  /// `steps` within [-most(), most()].
  Direction direction(std::int64_t steps) const {
    const Direction& at = table_[static_cast<std::size_t>(steps < 0 ? -steps : steps)];
    return {at.x, steps < 0 ? -at.y : at.y};
  }
  /// The steps whose direction is nearest to that of a vector of components below 2^31.
  std::int64_t nearest(std::int64_t x, std::int64_t y) const {
    const std::int64_t up = y < 0 ? -y : y;
    // The last direction that is not beyond the vector.
    std::size_t below = starts_[start_of(x, up)];
    while (below + 1 < table_.size() && !is_beyond(below + 1, x, up)) ++below;
    while (below > 0 && is_beyond(below, x, up)) --below;
    const std::size_t above = below + 1;
    // The sine of the angle to either neighbour; the angles are below a quarter turn but at the end of the table.
    if (above < table_.size() &&
        table_[above].y * x - table_[above].x * up < table_[below].x * up - table_[below].y * x)
      below = above;
    const auto steps = static_cast<std::int64_t>(below);
    return y < 0 ? -steps : steps;
  }

 private:
  static constexpr std::size_t kStarts = 4096;

  bool is_beyond(std::size_t i, std::int64_t x, std::int64_t up) const {
    return table_[i].x * up - table_[i].y * x < 0;
  }
  /// About where a direction lies on the way from x to -x, of kStarts parts; it only says where a search begins.
  static std::size_t start_of(std::int64_t x, std::int64_t up) {
    const std::int64_t sum = (x < 0 ? -x : x) + up;
    if (sum == 0) return 0;
    const double part = static_cast<double>(x) / static_cast<double>(sum);
    return static_cast<std::size_t>((1 - part) * (kStarts / 2 - 1));
  }

  Vector<Direction> table_;
  std::array<std::uint16_t, kStarts> starts_{};  ///< a place in the table near the directions of each part
};

}  // namespace quern::codec::lidar
