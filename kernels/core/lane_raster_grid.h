// A chunk in raster order as lanes see it, on its way in or out: where points and their neighbours lie, means of planes
// before, and predictions. Sums are of integers in binary64; where one is not below 2^50 the order of its terms might
// matter, and the chunk is left to the host.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/core/bits.h"
#include "kernels/core/raster_program.h"
#include "kernels/core/stencil_elements.h"
#include "kernels/core/tile.h"
#include "kernels/core/unroll.h"

namespace quern::kernels {

inline constexpr std::uint32_t kMostTeamWarps = 32;

/// A chunk under way. The same in all lanes.
struct RasterGrid {
  const RasterProgram* program = nullptr;
  const RasterTap<double>* taps = nullptr;
  const RasterTap<std::uint32_t>* context_taps = nullptr;
  double* values = nullptr;  ///< in C order; before a point is decoded, the bits of what planes before give to its sum
  std::uint32_t* magnitudes = nullptr;  ///< before a point is decoded, its context sum as far as it is known
  double* means = nullptr;

  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr explicit RasterGrid(const Task& task)
      : program(reinterpret_cast<const RasterProgram*>(task.program)),
        taps(reinterpret_cast<const RasterTap<double>*>(task.program + program->taps)),
        context_taps(reinterpret_cast<const RasterTap<std::uint32_t>*>(task.program + program->context_taps)),
        values(reinterpret_cast<double*>(task.work + program->values)),
        magnitudes(reinterpret_cast<std::uint32_t*>(task.work + program->magnitudes)),
        means(reinterpret_cast<double*>(task.work + program->means)) {}

  [[gnu::always_inline]] constexpr const RasterClass& row_class(std::uint32_t plane, std::uint32_t row) const {
    const std::uint32_t back = program->planes > 1 ? plane : row;
    const bool first_row = program->planes > 1 && row == 0;
    return program->classes[2 * (back < 2 ? back : 2) + (first_row && program->rows > 1 ? 0 : 1)];
  }
};

[[gnu::always_inline]] constexpr std::uint32_t kept_inside(std::int32_t i, std::uint32_t count) {
  if (i < 0) return 0;
  return i < static_cast<std::int32_t>(count) ? static_cast<std::uint32_t>(i) : count - 1;
}

/// Value, or mean, at a tap; beyond the chunk that of the nearest point.
template <class X>
[[gnu::always_inline]] constexpr double raster_value(const RasterGrid& grid, const RasterTap<double>& tap,
                                                     std::uint32_t plane, std::uint32_t row, std::uint32_t x,
                                                     std::size_t lane) {
  const RasterProgram& program = *grid.program;
  const std::uint32_t column = kept_inside(static_cast<std::int32_t>(x) + tap.column, program.columns);
  const std::uint32_t r = kept_inside(static_cast<std::int32_t>(row) + tap.row, program.rows);
  if (tap.mean) return X::load(grid.means + (std::size_t{r} * program.columns + column), lane);
  const std::uint32_t p = kept_inside(static_cast<std::int32_t>(plane) + tap.plane, program.planes);
  return X::load(grid.values + ((std::size_t{p} * program.rows + r) * program.columns + column), lane);
}

/// Magnitude at a tap, 0 beyond the chunk.
template <class X>
[[gnu::always_inline]] constexpr std::uint32_t raster_magnitude(const RasterGrid& grid,
                                                                const RasterTap<std::uint32_t>& tap,
                                                                std::uint32_t plane, std::uint32_t row, std::uint32_t x,
                                                                std::size_t lane) {
  const RasterProgram& program = *grid.program;
  const std::int32_t p = static_cast<std::int32_t>(plane) + tap.plane;
  const std::int32_t r = static_cast<std::int32_t>(row) + tap.row;
  const std::int32_t column = static_cast<std::int32_t>(x) + tap.column;
  if (p < 0 || r < 0 || r >= static_cast<std::int32_t>(program.rows) || column < 0 ||
      column >= static_cast<std::int32_t>(program.columns))
    return 0;
  const std::size_t place =
      (static_cast<std::size_t>(p) * program.rows + static_cast<std::size_t>(r)) * program.columns +
      static_cast<std::size_t>(column);
  return X::load(grid.magnitudes + place, lane);
}

/// A mean one plane on: nearest(...), ties to even, element by element.
[[gnu::always_inline]] constexpr double next_mean(double mean, double value, std::uint32_t plane) {
  const std::uint32_t share = 256 / plane;
  const double weight = static_cast<double>(share > 48 ? share : 48) * 0x1p-8;
  return mean + nearest((value - mean) * weight);
}

/// Integers below 2^51 in binary64, as integers.
[[gnu::always_inline]] constexpr std::int64_t whole_number(double v) {
  constexpr double kMagic = 0x1.8p52;
  return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(v + kMagic) - std::bit_cast<std::uint64_t>(kMagic));
}
[[gnu::always_inline]] constexpr bool is_wild(double sum) { return !(sum < 0x1p50 && sum > -0x1p50); }

/// The mean that a plane looks at: all of the plane before at first.
template <class X>
constexpr void update_raster_mean(const RasterGrid& grid, std::uint32_t plane, std::uint32_t warp,
                                  std::uint32_t warps) {
  const std::uint32_t elems = grid.program->rows * grid.program->columns;
  const double* const before = grid.values + std::size_t{plane - 1} * elems;
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < elems; i += warps * kLanes) {
      const double mean = plane == 1 ? 0 : X::load(grid.means + i, lane);
      X::store(grid.means + i, lane, next_mean(mean, X::load(before + i, lane), plane));
    }
  });
}

/// What planes before give to sums and (if wanted) contexts of a plane's points. wild[warp] becomes 1 where a sum is
/// too large.
template <class X, bool kContexts>
constexpr void sum_planes_before(const RasterGrid& grid, std::uint32_t plane, std::uint32_t warp, std::uint32_t warps,
                                 std::uint32_t* wild) {
  const RasterProgram& program = *grid.program;
  const std::uint32_t columns = program.columns;
  const std::uint32_t elems = program.rows * columns;
  typename X::template vec<bool> flags;
  X::lanes([&](std::size_t lane) {
    bool too_large = false;
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < elems; i += warps * kLanes) {
      const std::uint32_t row = i / columns;
      const std::uint32_t x = i % columns;
      const RasterList list = grid.row_class(plane, row).before;
      double sum = 0;
      rolled(list.first, list.first + list.count, [&](unsigned t) {
        sum += grid.taps[t].weight * raster_value<X>(grid, grid.taps[t], plane, row, x, lane);
      });
      too_large = too_large || is_wild(sum);
      const std::size_t place = std::size_t{plane} * elems + i;
      X::store(grid.values + place, lane, std::bit_cast<double>(whole_number(sum)));
      if constexpr (kContexts) {
        std::uint32_t context = program.context_constant;
        rolled(program.context_before.first, program.context_before.first + program.context_before.count,
               [&](unsigned t) {
                 context +=
                     grid.context_taps[t].weight * raster_magnitude<X>(grid, grid.context_taps[t], plane, row, x, lane);
               });
        X::store(grid.magnitudes + place, lane, context);
      }
    }
    X::set(flags, lane, too_large);
  });
  if (X::any(flags)) {
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(wild + warp, lane, std::uint32_t{1});
    });
  }
}

/// The mean that the next row of a chunk of one plane looks at, which goes on from row to row.
template <class X>
[[gnu::always_inline]] constexpr void next_row_mean(const RasterGrid& grid, std::uint32_t row, std::uint32_t x,
                                                    double value, std::size_t lane) {
  const RasterProgram& program = *grid.program;
  const std::size_t place = std::size_t{row} * program.columns + x;
  const double mean = row == 0 ? 0 : X::load(grid.means + place, lane);
  if (row + 1 < program.rows) X::store(grid.means + place + program.columns, lane, next_mean(mean, value, row + 1));
}

/// Values of the columns before a point, in the row that each lane walks, and the predictions from them.
template <class X>
class RasterNear {
 public:
  /// What a row's taps into itself see before its first point.
  [[gnu::always_inline]] constexpr void start_row(const RasterGrid& grid, std::uint32_t plane, std::uint32_t row,
                                                  std::size_t lane) {
    const RasterProgram& program = *grid.program;
    double first = 0;
    if (row > 0) {
      first = X::load(grid.values + (std::size_t{plane} * program.rows + row - 1) * program.columns, lane);
    } else if (plane > 0) {
      first = X::load(grid.values + std::size_t{plane - 1} * program.rows * program.columns, lane);
    }
    unroll<kRasterNearTaps>([&](auto t) { X::set(values_[t], lane, static_cast<std::int64_t>(first)); });
  }

  /// The prediction of a point, where sum_planes_before was. Sets `wild` where a sum is too large.
  [[gnu::always_inline]] constexpr std::int64_t predict(const RasterGrid& grid, std::uint32_t plane, std::uint32_t row,
                                                        std::uint32_t x, typename X::template vec<bool>& wild,
                                                        std::size_t lane) const {
    const RasterProgram& program = *grid.program;
    const RasterClass& plan = grid.row_class(plane, row);
    double rows_sum = 0;
    rolled(plan.rows.first, plan.rows.first + plan.rows.count, [&](unsigned t) {
      const RasterTap<double>& tap = grid.taps[t];
      // Of a chunk of one plane the mean goes on from row to row.
      const double value =
          tap.mean ? row_mean(grid, row, x, tap.column, lane) : raster_value<X>(grid, tap, plane, row, x, lane);
      rows_sum += tap.weight * value;
    });
    if (program.planes > 1 && is_wild(rows_sum)) X::set(wild, lane, true);
    auto sum = static_cast<std::uint64_t>(whole_number(rows_sum));
    if (program.planes > 1)
      sum += std::bit_cast<std::uint64_t>(
          X::load(grid.values + ((std::size_t{plane} * program.rows + row) * program.columns + x), lane));
    unroll<kRasterNearTaps>([&](auto t) {
      if (t < plan.near_count)
        sum += static_cast<std::uint64_t>(plan.near[t]) * static_cast<std::uint64_t>(X::get(values_[t], lane));
    });
    return static_cast<std::int64_t>(sum + (std::uint64_t{1} << (program.weight_bits - 1))) >> program.weight_bits;
  }

  [[gnu::always_inline]] constexpr std::int64_t last(std::size_t lane) const { return X::get(values_[0], lane); }
  [[gnu::always_inline]] constexpr void push(std::int64_t value, std::size_t lane) {
    unroll<kRasterNearTaps - 1>([&](auto t) {
      constexpr std::size_t kTo = kRasterNearTaps - 1 - decltype(t)::value;
      X::set(values_[kTo], lane, X::get(values_[kTo - 1], lane));
    });
    X::set(values_[0], lane, value);
  }

 private:
  [[gnu::always_inline]] static constexpr double row_mean(const RasterGrid& grid, std::uint32_t row, std::uint32_t x,
                                                          std::int32_t column, std::size_t lane) {
    const std::uint32_t columns = grid.program->columns;
    const std::uint32_t at = kept_inside(static_cast<std::int32_t>(x) + column, columns);
    return X::load(grid.means + (std::size_t{row} * columns + at), lane);
  }

  typename X::template vec<std::int64_t> values_[kRasterNearTaps];
};

}  // namespace quern::kernels
