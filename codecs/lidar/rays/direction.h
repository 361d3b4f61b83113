// Unit vectors in the plane as integers, and turns between them.
#pragma once

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
    std::size_t below = 0;
    std::size_t above = table_.size();
    while (above - below > 1) {
      const std::size_t middle = (below + above) / 2;
      (table_[middle].x * up - table_[middle].y * x >= 0 ? below : above) = middle;
    }
    // The sine of the angle to either neighbour; the angles are below a quarter turn but at the end of the table.
    if (above < table_.size() &&
        table_[above].y * x - table_[above].x * up < table_[below].x * up - table_[below].y * x)
      below = above;
    const auto steps = static_cast<std::int64_t>(below);
    return y < 0 ? -steps : steps;
  }

 private:
  Vector<Direction> table_;
};

}  // namespace quern::codec::lidar
