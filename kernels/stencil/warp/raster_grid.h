// A chunk in raster order as lanes see it, on its way in or out: where points and their neighbours lie, means of planes
// before, and predictions. Sums are of integers in binary64; where one is not below 2^50 the order of its terms might
// matter, and the chunk is left to the host.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/common/number_elements.h"
#include "kernels/common/round_to_integer.h"
#include "kernels/common/unroll.h"
#include "kernels/stencil/raster_job.h"
#include "kernels/stencil/rules.h"

namespace quern::kernels {

/// A chunk under way. The same in all lanes.
struct RasterGrid {
  const RasterJob* job = nullptr;
  const RasterTap<double>* taps = nullptr;
  const RasterTap<std::uint32_t>* context_taps = nullptr;
  double* values = nullptr;  ///< in C order; before a point is decoded, the bits of what planes before give to its sum
  std::uint32_t* magnitudes = nullptr;  ///< before a point is decoded, its context sum as far as it is known
  double* means = nullptr;

  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr explicit RasterGrid(const Task& task)
      : job(reinterpret_cast<const RasterJob*>(task.job)),
        taps(reinterpret_cast<const RasterTap<double>*>(task.job + job->taps)),
        context_taps(reinterpret_cast<const RasterTap<std::uint32_t>*>(task.job + job->context_taps)),
        values(reinterpret_cast<double*>(task.work + job->values)),
        magnitudes(reinterpret_cast<std::uint32_t*>(task.work + job->magnitudes)),
        means(reinterpret_cast<double*>(task.work + job->means)) {}
};

/// Which class a row is of; `several_planes`: of a chunk of more than one. In a job of one plane rows stand for planes.
[[gnu::always_inline]] constexpr std::uint32_t class_of_row(std::uint32_t plane, std::uint32_t row, std::uint32_t rows,
                                                            bool several_planes) {
  return several_planes ? row_class(plane, row, rows) : row_class(row, 0u, 1u);
}

/// As a minimum and a maximum, which devices have as one instruction.
[[gnu::always_inline]] constexpr std::uint32_t kept_inside(std::int32_t i, std::uint32_t count) {
  const auto most = static_cast<std::int32_t>(count) - 1;
  const std::int32_t low = i < most ? i : most;
  return static_cast<std::uint32_t>(low > 0 ? low : 0);
}

[[gnu::always_inline]] constexpr bool is_out_of_range(double sum) { return !(sum < 0x1p50 && sum > -0x1p50); }

/// Columns of a row that a warp works on at a time: some of each lane's, so that loads of one wait together.
inline constexpr std::uint32_t kRasterLanePoints = 4;
inline constexpr std::uint32_t kRasterBlock = kRasterLanePoints * kLanes;

/// Calls f(i, place) for a lane's points of a block that are below `end`.
template <class F>
[[gnu::always_inline]] constexpr void for_lane_points(std::uint32_t first, std::uint32_t end, std::size_t lane, F&& f) {
  unroll<kRasterLanePoints>([&](auto i) {
    const std::uint32_t at = first + static_cast<std::uint32_t>(i) * kLanes + static_cast<std::uint32_t>(lane);
    if (at < end) f(i, at);
  });
}

/// The mean that a plane looks at: all of the plane before at first.
template <class X>
constexpr void update_raster_mean(const RasterGrid& grid, std::uint32_t plane, std::uint32_t warp,
                                  std::uint32_t warps) {
  const std::uint32_t elems = grid.job->rows * grid.job->columns;
  const double* const before = grid.values + std::size_t{plane - 1} * elems;
  const double weight = mean_weight(plane);
  for (std::uint32_t first = warp * kRasterBlock; first < elems; first += warps * kRasterBlock) {
    X::lanes([&](std::size_t lane) {
      double means[kRasterLanePoints] = {};
      double values[kRasterLanePoints] = {};
      for_lane_points(first, elems, lane, [&](std::size_t i, std::uint32_t at) {
        if (plane > 1) means[i] = X::load(grid.means + at, lane);
        values[i] = X::load(before + at, lane);
      });
      for_lane_points(first, elems, lane, [&](std::size_t i, std::uint32_t at) {
        X::store(grid.means + at, lane, next_mean(means[i], values[i], weight));
      });
    });
  }
}

/// Calls f(row, begin) for all blocks of a plane's rows, dealt out to the warps.
template <class F>
constexpr void for_raster_blocks(const RasterJob& job, std::uint32_t rows, std::uint32_t warp, std::uint32_t warps,
                                 F&& f) {
  const std::uint32_t blocks = (job.columns + kRasterBlock - 1) / kRasterBlock;
  for (std::uint32_t t = warp; t < rows * blocks; t += warps) f(t / blocks, t % blocks * kRasterBlock);
}

/// What planes before give to the sums of points of a row.
template <class X>
[[gnu::always_inline]] constexpr void sum_values_before(const RasterGrid& grid, std::uint32_t plane, std::uint32_t row,
                                                        std::uint32_t x, double* sums, std::size_t lane) {
  const RasterJob& job = *grid.job;
  const RasterList list = job.classes[class_of_row(plane, row, job.rows, job.planes > 1)].before;
  in_fours(list.first, list.first + list.count, [&](unsigned t) {
    const RasterTap<double>& tap = grid.taps[t];
    const std::uint32_t r = kept_inside(static_cast<std::int32_t>(row) + tap.row, job.rows);
    const std::uint32_t p = kept_inside(static_cast<std::int32_t>(plane) + tap.plane, job.planes);
    const double* const line = tap.mean ? grid.means + r * job.columns : grid.values + (p * job.rows + r) * job.columns;
    const double weight = tap.weight;
    unroll<kRasterLanePoints>([&](auto i) {
      // Beyond the chunk that of the nearest point.
      const std::uint32_t column = kept_inside(static_cast<std::int32_t>(x + i * kLanes) + tap.column, job.columns);
      sums[i] += weight * X::load(line + column, lane);
    });
  });
}

/// The same of contexts, from magnitude(place).
template <class X, class F>
[[gnu::always_inline]] constexpr void sum_contexts(const RasterGrid& grid, const RasterList& list, std::uint32_t plane,
                                                   std::uint32_t row, std::uint32_t x, std::uint32_t* sums,
                                                   F&& magnitude) {
  const RasterJob& job = *grid.job;
  in_fours(list.first, list.first + list.count, [&](unsigned t) {
    const RasterTap<std::uint32_t>& tap = grid.context_taps[t];
    // Nothing beyond the chunk: below 0 is far beyond the end.
    const std::uint32_t p = plane + static_cast<std::uint32_t>(std::int32_t{tap.plane});
    const std::uint32_t r = row + static_cast<std::uint32_t>(std::int32_t{tap.row});
    if (p >= job.planes || r >= job.rows) return;
    const std::uint32_t line = (p * job.rows + r) * job.columns;
    unroll<kRasterLanePoints>([&](auto i) {
      const std::uint32_t column =
          x + static_cast<std::uint32_t>(i) * kLanes + static_cast<std::uint32_t>(std::int32_t{tap.column});
      if (column < job.columns) sums[i] += tap.weight * magnitude(line + column);
    });
  });
}

/// What planes before give to sums (and what rounds them) and (if wanted) contexts of a plane's points.
/// out_of_range[warp] becomes 1 where a sum is too large.
template <class X, bool kContexts>
constexpr void sum_planes_before(const RasterGrid& grid, std::uint32_t plane, std::uint32_t warp, std::uint32_t warps,
                                 std::uint32_t* out_of_range) {
  const RasterJob& job = *grid.job;
  const std::int64_t rounding = std::int64_t{1} << (job.weight_bits - 1);
  typename X::template vec<bool> flags;
  X::lanes([&](std::size_t lane) { X::set(flags, lane, false); });
  for_raster_blocks(job, job.rows, warp, warps, [&](std::uint32_t row, std::uint32_t begin) {
    const std::uint32_t first = (plane * job.rows + row) * job.columns;
    X::lanes([&](std::size_t lane) {
      const std::uint32_t x = begin + static_cast<std::uint32_t>(lane);
      double sums[kRasterLanePoints] = {};
      sum_values_before<X>(grid, plane, row, x, sums, lane);
      std::uint32_t contexts[kRasterLanePoints] = {};
      if constexpr (kContexts)
        sum_contexts<X>(grid, job.context_before, plane, row, x, contexts,
                        [&](std::uint32_t place) { return X::load(grid.magnitudes + place, lane); });
      unroll<kRasterLanePoints>([&](auto i) {
        const std::uint32_t at = x + static_cast<std::uint32_t>(i) * kLanes;
        if (at >= job.columns) return;
        if (is_out_of_range(sums[i])) X::set(flags, lane, true);
        X::store(grid.values + (first + at), lane, std::bit_cast<double>(nearest_integer(sums[i]) + rounding));
        if constexpr (kContexts) X::store(grid.magnitudes + (first + at), lane, job.context_constant + contexts[i]);
      });
    });
  });
  if (X::any(flags)) {
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(out_of_range + warp, lane, std::uint32_t{1});
    });
  }
}

}  // namespace quern::kernels
