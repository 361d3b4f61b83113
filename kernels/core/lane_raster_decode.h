// A chunk in raster order, decoded by the warps of a CTA: all warps sum up what a plane's points get from planes
// before, then the lanes of one warp walk its rows side by side, each row four columns behind the one before. Sums are
// of integers in binary64; where one is not below 2^50 the order of its terms might matter, and the chunk is left to
// the host.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/core/bits.h"
#include "kernels/core/lane_level_decode.h"
#include "kernels/core/lane_level_rans.h"
#include "kernels/core/lane_rows.h"
#include "kernels/core/program_task.h"
#include "kernels/core/raster_program.h"
#include "kernels/core/stencil_elements.h"
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

/// What planes before give to sums and contexts of a plane's points. wild[warp] becomes 1 where a sum is too large.
template <class X>
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
      std::uint32_t context = program.context_constant;
      rolled(program.context_before.first, program.context_before.first + program.context_before.count,
             [&](unsigned t) {
               context +=
                   grid.context_taps[t].weight * raster_magnitude<X>(grid, grid.context_taps[t], plane, row, x, lane);
             });
      too_large = too_large || is_wild(sum);
      const std::size_t place = std::size_t{plane} * elems + i;
      X::store(grid.values + place, lane, std::bit_cast<double>(whole_number(sum)));
      X::store(grid.magnitudes + place, lane, context);
    }
    X::set(flags, lane, too_large);
  });
  if (X::any(flags)) {
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(wild + warp, lane, std::uint32_t{1});
    });
  }
}

/// The rows of a plane, walked by one warp: a lane of the stream holds every 2^b-th row.
template <class X>
class RasterWalk {
 public:
  constexpr RasterWalk(const ProgramTask& task, const RasterGrid& grid, std::uint32_t plane, const LevelTables& tables)
      : task_(task), grid_(grid), plane_(plane), tables_(tables) {}

  /// Returns whether a sum was too large.
  constexpr bool run(LevelLanes<X>& lanes) {
    const RasterProgram& program = *grid_.program;
    X::lanes([&](std::size_t lane) { X::set(wild_, lane, false); });
    walk_rows<X>({program.rows, program.columns, plane_ * program.rows, program.lanes.mask},
                 [&](std::uint32_t row, std::uint32_t x, std::size_t lane) { decode(row, x, lanes, lane); });
    return X::any(wild_);
  }

 private:
  template <class T>
  using vec = typename X::template vec<T>;

  /// What a row's taps into itself see before its first point.
  [[gnu::always_inline]] constexpr void start_row(std::uint32_t row, std::size_t lane) {
    const RasterProgram& program = *grid_.program;
    double first = 0;
    if (row > 0) {
      first = X::load(grid_.values + (std::size_t{plane_} * program.rows + row - 1) * program.columns, lane);
    } else if (plane_ > 0) {
      first = X::load(grid_.values + std::size_t{plane_ - 1} * program.rows * program.columns, lane);
    }
    unroll<kRasterNearTaps>([&](auto t) { X::set(near_[t], lane, static_cast<std::int64_t>(first)); });
    X::set(context_[0], lane, std::uint32_t{0});
    X::set(context_[1], lane, std::uint32_t{0});
  }

  [[gnu::always_inline]] constexpr void decode(std::uint32_t row, std::uint32_t x, LevelLanes<X>& lanes,
                                               std::size_t lane) {
    const RasterProgram& program = *grid_.program;
    const RasterClass& plan = grid_.row_class(plane_, row);
    if (x == 0) start_row(row, lane);
    const std::size_t place = (std::size_t{plane_} * program.rows + row) * program.columns + x;
    double rows_sum = 0;
    rolled(plan.rows.first, plan.rows.first + plan.rows.count, [&](unsigned t) {
      const RasterTap<double>& tap = grid_.taps[t];
      // Of a chunk of one plane the mean goes on from row to row.
      const double value =
          tap.mean ? row_mean(row, x, tap.column, lane) : raster_value<X>(grid_, tap, plane_, row, x, lane);
      rows_sum += tap.weight * value;
    });
    if (program.planes > 1 && is_wild(rows_sum)) X::set(wild_, lane, true);
    auto sum = static_cast<std::uint64_t>(whole_number(rows_sum));
    std::uint32_t context = program.context_constant;
    if (program.planes > 1) {
      sum += std::bit_cast<std::uint64_t>(X::load(grid_.values + place, lane));
      context = X::load(grid_.magnitudes + place, lane);
    }
    unroll<kRasterNearTaps>([&](auto t) {
      if (t < plan.near_count)
        sum += static_cast<std::uint64_t>(plan.near[t]) * static_cast<std::uint64_t>(X::get(near_[t], lane));
    });
    const std::int64_t predicted =
        static_cast<std::int64_t>(sum + (std::uint64_t{1} << (program.weight_bits - 1))) >> program.weight_bits;
    std::int64_t value = X::get(near_[0], lane);
    std::uint32_t magnitude = 0;
    const bool special =
        program.masked &&
        X::load(task_.special + plane_ * program.special_plane_stride + row * program.special_row_stride + x, lane) !=
            0;
    if (!special) {
      rolled(program.context_rows.first, program.context_rows.first + program.context_rows.count, [&](unsigned t) {
        context +=
            grid_.context_taps[t].weight * raster_magnitude<X>(grid_, grid_.context_taps[t], plane_, row, x, lane);
      });
      context +=
          program.near_context[0] * X::get(context_[0], lane) + program.near_context[1] * X::get(context_[1], lane);
      const LevelTokens& table = tables_.tokens[X::load(&tables_.serving[context_level(context)], lane)];
      const std::int32_t residual = lanes.take(table, lane);
      value = static_cast<std::int64_t>(
          static_cast<std::uint64_t>(predicted) +
          (static_cast<std::uint64_t>(static_cast<std::int64_t>(residual)) << program.fraction_bits));
      const auto size = static_cast<std::uint32_t>(residual < 0 ? -residual : residual);
      magnitude = size < kMostContextMagnitude ? size : std::uint32_t{kMostContextMagnitude};
    }
    X::set(context_[1], lane, X::get(context_[0], lane));
    X::set(context_[0], lane, magnitude);
    unroll<kRasterNearTaps - 1>([&](auto t) {
      constexpr std::size_t kTo = kRasterNearTaps - 1 - decltype(t)::value;
      X::set(near_[kTo], lane, X::get(near_[kTo - 1], lane));
    });
    X::set(near_[0], lane, value);
    // Encoders keep values below 2^51; others are cut so that binary64 holds them.
    const auto kept = static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << 11) >> 11);
    X::store(grid_.values + place, lane, kept);
    X::store(grid_.magnitudes + place, lane, magnitude);
    if (program.mean && program.planes == 1) {
      const double mean = row == 0 ? 0 : X::load(grid_.means + place, lane);
      if (row + 1 < program.rows) X::store(grid_.means + place + program.columns, lane, next_mean(mean, kept, row + 1));
    }
  }

  [[gnu::always_inline]] constexpr double row_mean(std::uint32_t row, std::uint32_t x, std::int32_t column,
                                                   std::size_t lane) const {
    const std::uint32_t columns = grid_.program->columns;
    const std::uint32_t at = kept_inside(static_cast<std::int32_t>(x) + column, columns);
    return X::load(grid_.means + (std::size_t{row} * columns + at), lane);
  }

  const ProgramTask& task_;
  const RasterGrid& grid_;
  std::uint32_t plane_;
  const LevelTables& tables_;
  vec<bool> wild_;
  vec<std::int64_t> near_[kRasterNearTaps];  ///< values of the columns before
  vec<std::uint32_t> context_[2];            ///< and their magnitudes
};

/// Elements of a complete chunk, and exceptions over them.
template <class X>
constexpr void store_raster_elements(const ProgramTask& task, const RasterGrid& grid, std::uint32_t warp,
                                     std::uint32_t warps) {
  const RasterProgram& program = *grid.program;
  const std::size_t width = element_bytes(program.element);
  const std::uint32_t rows = program.planes * program.rows;
  const std::uint32_t blocks = (program.columns + kBlockPoints - 1) / kBlockPoints;
  for (std::uint32_t t = warp; t < rows * blocks; t += warps) {
    const std::uint32_t n = t / blocks;
    const std::uint32_t begin = t % blocks * kBlockPoints;
    const std::uint64_t out = n / program.rows * program.plane_stride + n % program.rows * program.row_stride;
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t x = begin + static_cast<std::uint32_t>(lane); x < program.columns && x < begin + kBlockPoints;
           x += kLanes) {
        const double number =
            X::load(grid.values + (std::size_t{n} * program.columns + x), lane) * program.unit + program.base;
        const double value = program.lattice.element(number);
        const std::uint64_t bits = with_stencil_element(
            program.element, [&](auto type) -> std::uint64_t { return decltype(type)::bits(value); });
        put_element<X>(task.out, width, out + x, bits, lane);
      }
    });
  }
}
template <class X>
constexpr void store_raster_exceptions(const ProgramTask& task, const RasterGrid& grid,
                                       const LevelException* exceptions, std::uint32_t warp, std::uint32_t warps) {
  const RasterProgram& program = *grid.program;
  const std::size_t width = element_bytes(program.element);
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < program.exception_count;
         i += warps * kLanes) {
      const std::uint32_t n = exceptions[i].index / program.columns;
      const std::uint64_t out = n / program.rows * program.plane_stride + n % program.rows * program.row_stride +
                                exceptions[i].index % program.columns;
      put_element<X>(task.out, width, out, exceptions[i].bits, lane);
    }
  });
}

/// Decodes a chunk, as decode_level_chunk does. False, too, for a chunk that the host has to decode because its sums
/// are too large; `wild` are kMostTeamWarps + 1 words that the team shares.
template <class X, class Team>
constexpr bool decode_raster_chunk(Team& team, const ProgramTask& task, LevelTables& tables, std::uint32_t* wild) {
  const RasterGrid grid(task);
  const RasterProgram& program = *grid.program;
  team.all([&](std::uint32_t warp, std::uint32_t warps) {
    fill_level_tables<X>(program, LevelGridView::table<LevelStarts>(task, program.starts), warp, warps, tables);
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(wild + warp, lane, std::uint32_t{0});
      if (lane == 0 && warp == 0) X::store(wild + kMostTeamWarps, lane, warps);
    });
  });
  LevelLanes<X> lanes;
  bool good = true;
  team.first([&] { lanes.open(program.lanes, LevelGridView::table<std::uint8_t>(task, program.words)); });
  for (std::uint32_t plane = 0; plane < program.planes; ++plane) {
    if (program.planes > 1) {
      if (program.mean && plane > 0)
        team.all([&](std::uint32_t warp, std::uint32_t warps) { update_raster_mean<X>(grid, plane, warp, warps); });
      team.all([&](std::uint32_t warp, std::uint32_t warps) { sum_planes_before<X>(grid, plane, warp, warps, wild); });
    }
    team.first([&] { good = !RasterWalk<X>(task, grid, plane, tables).run(lanes) && good; });
  }
  team.first([&] { good = lanes.finished() && good; });
  // Every warp's words, which nobody writes any more.
  team.first([&] {
    for (std::uint32_t w = 0; w < X::load_same(wild + kMostTeamWarps); ++w) good = good && X::load_same(wild + w) == 0;
  });
  team.all([&](std::uint32_t warp, std::uint32_t warps) { store_raster_elements<X>(task, grid, warp, warps); });
  team.all([&](std::uint32_t warp, std::uint32_t warps) {
    store_raster_exceptions<X>(task, grid, LevelGridView::table<LevelException>(task, program.exceptions), warp, warps);
  });
  return good;
}

}  // namespace quern::kernels
