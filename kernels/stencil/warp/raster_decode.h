// A chunk in raster order, decoded by the warps of a CTA: all warps sum up what a plane's points get from planes
// before, then the lanes of one warp walk its rows side by side, each row four columns behind the one before. Sums are
// of integers in binary64; where values are so large that the order of terms might matter, the chunk is left to the
// host.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/job_task.h"
#include "kernels/common/number_elements.h"
#include "kernels/common/unroll.h"
#include "kernels/stencil/raster_job.h"
#include "kernels/stencil/warp/level_grid.h"
#include "kernels/stencil/warp/raster_grid.h"
#include "kernels/stencil/warp/raster_walk.h"
#include "kernels/stencil/warp/residual_streams.h"

namespace quern::kernels {

/// What the warps of a chunk share.
struct RasterDecodeShared {
  LevelTables tables;
  RasterWalkMemory walk;
  std::uint32_t out_of_range[kMaxBlockWarps];  ///< not 0: a sum of a warp was too large
};

/// Takes the points of a plane, by one warp: a lane of the stream holds every 2^b-th row.
template <class X, bool kPlanes>
class RasterPointTaker {
  template <class T>
  using vec = typename X::template vec<T>;

 public:
  constexpr RasterPointTaker(const JobTask& task, const RasterGrid& grid, std::uint32_t plane,
                             RasterDecodeShared& shared, LevelLanes<X>& lanes)
      : grid_(grid),
        special_(task.special + plane * grid.job->special_plane_stride),
        special_row_stride_(grid.job->special_row_stride),
        masked_(grid.job->masked),
        fraction_bits_(grid.job->fraction_bits),
        context_constant_(grid.job->context_constant),
        near_context_{grid.job->near_context[0], grid.job->near_context[1]},
        first_(plane * grid.job->rows * grid.job->columns),
        value_bits_(kExactBits - grid.job->weight_bits),
        tables_(shared.tables),
        lanes_(lanes),
        walk_(grid, plane, plane * grid.job->rows, grid.job->lanes.mask, shared.walk) {}

  /// Returns whether a sum or a value was too large.
  constexpr bool run() {
    X::lanes([&](std::size_t lane) {
      X::set(out_of_range_, lane, false);
      X::set(value_bits_used_, lane, std::uint64_t{0});
    });
    walk_.run(*this);
    X::lanes([&](std::size_t lane) {
      if (X::get(value_bits_used_, lane) >> value_bits_ != 0) X::set(out_of_range_, lane, true);
    });
    return X::any(out_of_range_);
  }

  [[gnu::always_inline]] constexpr void clear(std::size_t lane) {
    unroll<kBeforeColumns>([&](auto i) {
      X::set(next_before_[i], lane, std::int64_t{0});
      X::set(next_contexts_[i], lane, std::uint32_t{0});
    });
    unroll<2>([&](auto t) { X::set(magnitudes_[t], lane, std::uint32_t{0}); });
  }
  [[gnu::always_inline]] constexpr void load(std::uint32_t in_plane, std::size_t i, std::size_t lane) {
    if constexpr (kPlanes) {
      X::set(next_before_[i], lane, std::bit_cast<std::int64_t>(X::load(grid_.values + (first_ + in_plane), lane)));
      X::set(next_contexts_[i], lane, X::load(grid_.magnitudes + (first_ + in_plane), lane));
    }
  }
  [[gnu::always_inline]] constexpr void shift(std::size_t lane) {
    unroll<kBeforeColumns>([&](auto i) {
      X::set(before_[i], lane, X::get(next_before_[i], lane));
      X::set(contexts_[i], lane, X::get(next_contexts_[i], lane));
    });
  }
  [[gnu::always_inline]] constexpr void step(const WalkPoint& point, std::size_t i, std::size_t lane) {
    if (i == 0 && point.x == 0) unroll<2>([&](auto t) { X::set(magnitudes_[t], lane, std::uint32_t{0}); });
    const double rows_sum = walk_.rows_sum(point, lane);
    std::int64_t before = 0;
    std::uint32_t context = context_constant_;
    if constexpr (kPlanes) {
      before = X::get(before_[i], lane);
      context = X::get(contexts_[i], lane);
    }
    const std::int64_t predicted = walk_.predict(rows_sum, before, lane);
    std::int64_t value = walk_.last(lane);
    std::uint32_t magnitude = 0;
    if (point.here) {
      if (is_out_of_range(rows_sum)) X::set(out_of_range_, lane, true);
      if (!masked_ || X::load(special_ + point.row * special_row_stride_ + point.x, lane) == 0) {
        context += walk_.row_context(lane) + near_context_[0] * X::get(magnitudes_[0], lane) +
                   near_context_[1] * X::get(magnitudes_[1], lane);
        const LevelTokens& table = tables_.tokens[X::load(&tables_.serving[context_bin(context)], lane)];
        const std::int32_t residual = lanes_.take(table, lane);
        value = static_cast<std::int64_t>(
            static_cast<std::uint64_t>(predicted) +
            (static_cast<std::uint64_t>(static_cast<std::int64_t>(residual)) << fraction_bits_));
        magnitude = capped_magnitude(residual, kMaxContextMagnitude);
      }
      X::set(value_bits_used_, lane,
             X::get(value_bits_used_, lane) | static_cast<std::uint64_t>(value ^ (value >> 63)));
      walk_.push_magnitude(point, magnitude, lane);
    }
    X::set(magnitudes_[1], lane, X::get(magnitudes_[0], lane));
    X::set(magnitudes_[0], lane, magnitude);
    walk_.push(point, value, lane);
  }

 private:
  /// Magnitudes of weights sum to at most 2^4 in units of one: with values below 2^49 in units of weights, every sum
  /// is exact in any order.
  static constexpr unsigned kExactBits = 49;
  static constexpr std::size_t kBeforeColumns = kPlanes ? kRowSkew : 0;

  const RasterGrid& grid_;
  const std::uint8_t* special_;
  std::uint64_t special_row_stride_;
  bool masked_;
  std::uint32_t fraction_bits_;
  std::uint32_t context_constant_;
  std::uint32_t near_context_[2];
  std::uint32_t first_;  ///< place of the plane's first point
  unsigned value_bits_;  ///< that values may have
  const LevelTables& tables_;
  LevelLanes<X>& lanes_;
  RasterWalk<X, kPlanes, true> walk_;
  vec<bool> out_of_range_;
  vec<std::uint64_t> value_bits_used_;
  vec<std::int64_t> before_[kRowSkew];  ///< what planes before give to sums
  vec<std::int64_t> next_before_[kRowSkew];
  vec<std::uint32_t> contexts_[kRowSkew];  ///< and to contexts
  vec<std::uint32_t> next_contexts_[kRowSkew];
  vec<std::uint32_t> magnitudes_[2];  ///< of the columns before
};

/// Elements of a complete chunk, and exceptions over them.
template <class X>
constexpr void store_raster_elements(const JobTask& task, const RasterGrid& grid, std::uint32_t warp,
                                     std::uint32_t warps) {
  const RasterJob& job = *grid.job;
  const std::size_t width = element_bytes(job.element);
  const std::uint32_t rows = job.planes * job.rows;
  const std::uint32_t blocks = (job.columns + kBlockPoints - 1) / kBlockPoints;
  for (std::uint32_t t = warp; t < rows * blocks; t += warps) {
    const std::uint32_t n = t / blocks;
    const std::uint32_t begin = t % blocks * kBlockPoints;
    const std::uint64_t out = n / job.rows * job.plane_stride + n % job.rows * job.row_stride;
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t x = begin + static_cast<std::uint32_t>(lane); x < job.columns && x < begin + kBlockPoints;
           x += kLanes) {
        const double number = X::load(grid.values + (std::size_t{n} * job.columns + x), lane) * job.unit + job.base;
        const double value = job.lattice.element(number);
        const std::uint64_t bits =
            with_number_element(job.element, [&](auto type) -> std::uint64_t { return decltype(type)::bits(value); });
        put_element<X>(task.out, width, out + x, bits, lane);
      }
    });
  }
}
template <class X>
constexpr void store_raster_exceptions(const JobTask& task, const RasterGrid& grid, const JobException* exceptions,
                                       std::uint32_t warp, std::uint32_t warps) {
  const RasterJob& job = *grid.job;
  const std::size_t width = element_bytes(job.element);
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < job.exception_count;
         i += warps * kLanes) {
      const std::uint32_t n = exceptions[i].index / job.columns;
      const std::uint64_t out =
          n / job.rows * job.plane_stride + n % job.rows * job.row_stride + exceptions[i].index % job.columns;
      put_element<X>(task.out, width, out, exceptions[i].bits, lane);
    }
  });
}

/// Decodes a chunk, as decode_level_chunk does. False, too, for a chunk that the host has to decode because its sums
/// are too large.
template <class X, class Block>
constexpr bool decode_raster_chunk(Block& block, const JobTask& task, RasterDecodeShared& shared) {
  const RasterGrid grid(task);
  const RasterJob& job = *grid.job;
  std::uint32_t block_warps = 0;
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    block_warps = warps;
    fill_level_tables<X>(job, LevelGridView::table<StreamStarts>(task, job.starts), warp, warps, shared.tables);
    fill_walk_memory<X>(grid, warp, shared.walk);
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(shared.out_of_range + warp, lane, std::uint32_t{0});
    });
  });
  LevelLanes<X> lanes;
  bool good = true;
  block.first([&] { lanes.open(job.lanes, LevelGridView::table<std::uint8_t>(task, job.words)); });
  if (job.planes > 1) {
    for (std::uint32_t plane = 0; plane < job.planes; ++plane) {
      if (job.mean && plane > 0)
        block.all([&](std::uint32_t warp, std::uint32_t warps) { update_raster_mean<X>(grid, plane, warp, warps); });
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        sum_planes_before<X, true>(grid, plane, warp, warps, shared.out_of_range);
      });
      block.first([&] { good = !RasterPointTaker<X, true>(task, grid, plane, shared, lanes).run() && good; });
    }
  } else {
    block.first([&] { good = !RasterPointTaker<X, false>(task, grid, 0, shared, lanes).run(); });
  }
  block.first([&] { good = lanes.finished() && good; });
  // Every warp's words, which nobody writes any more.
  block.first([&] {
    for (std::uint32_t w = 0; w < block_warps; ++w) good = good && X::load_same(shared.out_of_range + w) == 0;
  });
  block.all([&](std::uint32_t warp, std::uint32_t warps) { store_raster_elements<X>(task, grid, warp, warps); });
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    store_raster_exceptions<X>(task, grid, LevelGridView::table<JobException>(task, job.exceptions), warp, warps);
  });
  return good;
}

}  // namespace quern::kernels
