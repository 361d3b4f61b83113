// Unit vectors in the plane as integers, and turns between them.
#pragma once

#include <array>
#include <cstdint>

#include <quern/memory.h>

#include "kernels/common/integer_root.h"
#include "kernels/lidar/step_search.h"

namespace quern::codec::lidar {

using kernels::Direction;
using kernels::kDirectionBits;
inline constexpr std::int64_t kOne = INT64_C(1) << kDirectionBits;

/// The direction of a vector of components of at most 2^31; x where it is too short to have one.
inline Direction direction_of(std::int64_t x, std::int64_t y) {
  const std::uint64_t length =
      kernels::integer_root(static_cast<std::uint64_t>(x * x) + static_cast<std::uint64_t>(y * y));
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
    for (std::size_t i = 0; i < table_.size(); ++i) {
      const std::size_t own = kernels::StepSearch::start_of(table_[i].x, table_[i].y);
      for (; start <= own; ++start) starts_[start] = static_cast<std::uint16_t>(i);
    }
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
  std::int64_t nearest(std::int64_t x, std::int64_t y) const { return search().nearest(x, y); }
  /// Points into this table.
  kernels::StepSearch search() const { return {table_.data(), table_.size(), starts_.data()}; }

 private:
  Vector<Direction> table_;
  std::array<std::uint16_t, kernels::StepSearch::kStarts> starts_{};
};

}  // namespace quern::codec::lidar
