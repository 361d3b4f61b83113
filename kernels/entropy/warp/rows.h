// Rows walked side by side by one warp, each behind the one before: for codes whose context and prediction look at rows
// before, while a lane of the stream holds every 2^b-th row.
#pragma once

#include <cstdint>

#include "kernels/common/lanes.h"

namespace quern::kernels {

/// Columns that a row is behind the one before: three ahead of a point are known there.
inline constexpr std::uint32_t kRowSkew = 4;

struct RowsToWalk {
  std::uint32_t rows = 0;  ///< at least 1
  std::uint32_t columns = 0;
  std::uint32_t number = 0;  ///< of the first row
  std::uint32_t mask = 0;    ///< row n is in lane n & mask
};

/// Calls f(row, column, lane) for all points, rows counted from 0, columns of a row in order. When it is called for a
/// point, rows before are complete up to three columns ahead, and what was written for them is seen.
template <class X, class F>
constexpr void walk_rows(const RowsToWalk& walk, F&& f) {
  const std::uint32_t mask = walk.mask;
  // A lane begins its next row when it is through with one, and the row before is far enough.
  const std::uint32_t wave = (mask + 1) * kRowSkew;
  const std::uint32_t period = walk.columns > wave ? walk.columns : wave;
  const std::uint32_t last = walk.rows - 1;
  const std::uint32_t steps = last / (mask + 1) * period + (last & mask) * kRowSkew + walk.columns;
  typename X::template vec<std::uint32_t> row;
  typename X::template vec<std::uint32_t> x;
  typename X::template vec<std::uint32_t> wait;
  X::lanes([&](std::size_t lane) {
    const std::uint32_t first = (static_cast<std::uint32_t>(lane) - walk.number) & mask;
    X::set(row, lane, first);
    X::set(x, lane, std::uint32_t{0});
    X::set(wait, lane, first * kRowSkew);
  });
  for (std::uint32_t step = 0; step < steps; ++step) {
    X::lanes([&](std::size_t lane) {
      if (lane > mask || step < X::get(wait, lane) || X::get(row, lane) >= walk.rows) return;
      const std::uint32_t at = X::get(x, lane);
      if (at < walk.columns) f(X::get(row, lane), at, lane);
      const bool through = at + 1 == period;
      X::set(x, lane, through ? 0 : at + 1);
      if (through) X::set(row, lane, X::get(row, lane) + mask + 1);
    });
    X::sync();
  }
}

}  // namespace quern::kernels
