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
#include "kernels/core/lane_raster_grid.h"
#include "kernels/core/lane_rows.h"
#include "kernels/core/program_task.h"
#include "kernels/core/raster_program.h"
#include "kernels/core/stencil_elements.h"
#include "kernels/core/unroll.h"

namespace quern::kernels {

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

  [[gnu::always_inline]] constexpr void decode(std::uint32_t row, std::uint32_t x, LevelLanes<X>& lanes,
                                               std::size_t lane) {
    const RasterProgram& program = *grid_.program;
    if (x == 0) {
      near_.start_row(grid_, plane_, row, lane);
      X::set(context_[0], lane, std::uint32_t{0});
      X::set(context_[1], lane, std::uint32_t{0});
    }
    const std::size_t place = (std::size_t{plane_} * program.rows + row) * program.columns + x;
    const std::int64_t predicted = near_.predict(grid_, plane_, row, x, wild_, lane);
    std::uint32_t context = program.planes > 1 ? X::load(grid_.magnitudes + place, lane) : program.context_constant;
    std::int64_t value = near_.last(lane);
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
    near_.push(value, lane);
    // Encoders keep values below 2^51; others are cut so that binary64 holds them.
    const auto kept = static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << 11) >> 11);
    X::store(grid_.values + place, lane, kept);
    X::store(grid_.magnitudes + place, lane, magnitude);
    if (program.mean && program.planes == 1) next_row_mean<X>(grid_, row, x, kept, lane);
  }

  const ProgramTask& task_;
  const RasterGrid& grid_;
  std::uint32_t plane_;
  const LevelTables& tables_;
  vec<bool> wild_;
  RasterNear<X> near_;
  vec<std::uint32_t> context_[2];  ///< magnitudes of the columns before
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
      team.all(
          [&](std::uint32_t warp, std::uint32_t warps) { sum_planes_before<X, true>(grid, plane, warp, warps, wild); });
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
