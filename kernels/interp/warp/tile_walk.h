// The points of tiles, by the warps of a thread block: where they lie, and what they are predicted by. A tile is worked on
// with its ends, the planes of points that it shares with the tiles behind it: nothing that interpolates them lies
// outside. So every tile is worked on by itself; where tiles meet, points are worked on more than once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/common/unroll.h"
#include "kernels/interp/interp_job.h"

namespace quern::kernels {

/// Which neighbours along an axis a point has: bit 0 that at -3 steps, above it how many there are behind it, at
/// most two.
inline constexpr std::uint32_t kInterpEdges = 6;

/// What the warps of a tile share: its points in C order, 32 or 64 bits each, and tables of the job.
struct InterpTileMemory {
  alignas(8) unsigned char points[kInterpMostTilePoints * sizeof(std::int64_t)];
  std::uint32_t weights[kInterpKinds][kInterpEdges];  ///< a byte each, of the neighbour at -3 steps the lowest
  InterpLevelPlan levels[kInterpMostLevels];
  InterpClassPlan classes[kInterpMostClasses];
};

/// Division by a number below 2^14 of numbers whose product with it is below 2^31.
class SmallDivisor {
 public:
  explicit constexpr SmallDivisor(std::uint32_t divisor) : divisor_(divisor), inverse_((1u << 31) / divisor + 1) {}
  [[gnu::always_inline]] constexpr std::uint32_t quotient(std::uint32_t n) const {
    return static_cast<std::uint32_t>((std::uint64_t{n} * inverse_) >> 31);
  }
  [[gnu::always_inline]] constexpr std::uint32_t value() const { return divisor_; }

 private:
  std::uint32_t divisor_;
  std::uint32_t inverse_;
};

/// The points of a box in C order.
class InterpBox {
 public:
  constexpr InterpBox(std::uint32_t planes, std::uint32_t rows, std::uint32_t columns)
      : count_(planes * rows * columns), rows_(rows > 0 ? rows : 1), columns_(columns > 0 ? columns : 1) {}
  constexpr std::uint32_t count() const { return count_; }
  struct Place {
    std::uint32_t at[kInterpAxes];
  };
  [[gnu::always_inline]] constexpr Place place(std::uint32_t number) const {
    const std::uint32_t row = columns_.quotient(number);
    const std::uint32_t plane = rows_.quotient(row);
    return {{plane, row - plane * rows_.value(), number - row * columns_.value()}};
  }

 private:
  std::uint32_t count_;
  SmallDivisor rows_;
  SmallDivisor columns_;
};

/// A point of a class, within the tile.
struct InterpTilePoint {
  std::uint32_t code = 0;                 ///< its number among the codes of its class
  std::uint32_t at = 0;                   ///< its number among the points of the tile
  std::uint32_t place[kInterpAxes] = {};  ///< where it lies in the tile
};

/// The tiles of a chunk, of which it is at one.
template <class X, class Word>
class InterpTileWalk {
 public:
  constexpr InterpTileWalk(const InterpView& view, InterpTileMemory& shared)
      : job(*view.job), memory(shared), values(reinterpret_cast<Word*>(shared.points)) {
    unroll<kInterpAxes>([&](auto a) { tiles[a] = ((job.extents[a] - 1) >> job.tile_logs[a]) + 1; });
  }

  constexpr std::uint32_t count() const { return tiles[0] * tiles[1] * tiles[2]; }

  /// Goes to tile `number` in C order.
  constexpr void go_to(std::uint32_t number) {
    at[2] = number % tiles[2];
    at[1] = number / tiles[2] % tiles[1];
    at[0] = number / tiles[2] / tiles[1];
    unroll<kInterpAxes>([&](auto a) {
      const unsigned log = job.tile_logs[a];
      const std::uint32_t left = job.extents[a] - (at[a] << log);
      own[a] = least(1u << log, left);
      reach[a] = log == 0 ? 1 : least((1u << log) + 1, left);
    });
  }

  /// Calls visit(class, level, warp, warps) in all warps for all classes but the anchors; what a class sees is done
  /// before.
  template <class Block, class Visit>
  constexpr void for_classes(Block& block, const Visit& visit) const {
    for (std::uint32_t level = 1; level < job.level_count; ++level) {
      // A class sees only those that are odd along fewer axes.
      for (unsigned odd = 1; odd <= kInterpAxes; ++odd) {
        const InterpLevelPlan& plan = memory.levels[level];
        bool any = false;
        for (std::uint32_t c = plan.class_begin; c < plan.class_end; ++c)
          any = any || popcount(memory.classes[c].point_class) == odd;
        if (!any) continue;
        block.all([&](std::uint32_t warp, std::uint32_t warps) {
          for (std::uint32_t c = plan.class_begin; c < plan.class_end; ++c)
            if (popcount(memory.classes[c].point_class) == odd) visit(memory.classes[c], plan, warp, warps);
        });
      }
    }
  }

  /// Calls fetch(point, lane) and then store(point, predicted, what fetch has returned, lane) for the points of a class.
  template <class Fetch, class Store>
  [[gnu::always_inline]] constexpr void for_points(const InterpClassPlan& plan, const InterpLevelPlan& level,
                                                   std::uint32_t warp, std::uint32_t warps, const Fetch& fetch,
                                                   const Store& store) const {
    const ClassAxis axes[kInterpAxes] = {class_axis(plan, level, 0, at[0]), class_axis(plan, level, 1, at[1]),
                                         class_axis(plan, level, 2, at[2])};
    const InterpBox box(axes[0].count, axes[1].count, axes[2].count);
    // Copies: what is read in the loop lies in registers then, as stores could not change it.
    const InterpPredictor predictor = plan.predictor;
    const std::uint32_t* const weights = memory.weights[static_cast<std::size_t>(predictor.kind)];
    const std::uint32_t extents[kInterpAxes] = {plan.extents[0], plan.extents[1], plan.extents[2]};
    const std::uint32_t strides[kInterpAxes] = {reach[1] * reach[2], reach[2], 1};
    const unsigned level_number = level.level;
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t n = warp * kLanes + static_cast<std::uint32_t>(lane); n < box.count(); n += warps * kLanes) {
        const InterpBox::Place i = box.place(n);
        InterpTilePoint point;
        unroll<kInterpAxes>([&](auto a) {
          point.code = point.code * extents[a] + axes[a].first + i.at[a];
          point.place[a] = (i.at[a] << axes[a].shift) + axes[a].odd;
          point.at += point.place[a] * strides[a];
        });
        const auto fetched = fetch(point, lane);
        Word along[kInterpAxes] = {};
        unroll<kInterpAxes>([&](auto a) {
          if ((predictor.axes >> a & 1) == 0) return;
          const std::uint32_t behind = axes[a].coarse - 1 - i.at[a];
          const std::uint32_t edge = (i.at[a] > 0 ? 1u : 0u) + 2 * least(behind, 2);
          along[a] = interpolated(X::load(weights + edge, lane), point.at, strides[a] << level_number, lane);
        });
        store(point, mean(along, predictor.axes), fetched, lane);
      }
    });
  }

  /// Writes the values of its corners, by one warp.
  constexpr void take_anchors(const Word* anchors) const {
    const std::uint32_t* const points = memory.levels[0].points;
    X::lanes([&](std::size_t lane) {
      if (lane >= 1u << kInterpAxes) return;
      std::uint32_t from = 0;
      std::uint32_t to = 0;
      bool there = true;
      unroll<kInterpAxes>([&](auto a) {
        const std::uint32_t end = static_cast<std::uint32_t>(lane) >> a & 1;
        there = there && (end == 0 || (job.tile_logs[a] > 0 && at[a] + 1 < points[a]));
        from = from * points[a] + at[a] + end;
        to = to * reach[a] + (end << job.tile_logs[a]);
      });
      if (there) X::store(values + to, lane, X::load(anchors + from, lane));
    });
  }

  [[gnu::always_inline]] static constexpr std::uint32_t least(std::uint32_t a, std::uint32_t b) {
    return a < b ? a : b;
  }
  /// Where a point of the tile lies, counted in points from its first one.
  [[gnu::always_inline]] constexpr std::uint32_t position(std::uint32_t z, std::uint32_t y, std::uint32_t x) const {
    return (z * reach[1] + y) * reach[2] + x;
  }

  const InterpJob& job;
  InterpTileMemory& memory;
  Word* values;                           ///< of its points in C order
  std::uint32_t tiles[kInterpAxes] = {};  ///< in the chunk
  std::uint32_t at[kInterpAxes] = {};     ///< the tile, counted in tiles
  std::uint32_t own[kInterpAxes] = {};    ///< its extents without its end
  std::uint32_t reach[kInterpAxes] = {};  ///< and with it

 private:
  /// How the places of a class along an axis lie in the tile.
  struct ClassAxis {
    std::uint32_t count = 0;   ///< places in the tile
    std::uint32_t first = 0;   ///< of those in the chunk
    std::uint32_t coarse = 0;  ///< places of the level above in the tile
    std::uint32_t shift = 0;   ///< place number i lies at (i << shift) + odd
    std::uint32_t odd = 0;
  };
  constexpr ClassAxis class_axis(const InterpClassPlan& plan, const InterpLevelPlan& level, std::uint32_t a,
                                 std::uint32_t tile_at) const {
    const unsigned tile = job.tile_logs[a];
    ClassAxis axis;
    axis.shift = level.level + 1u < tile ? level.level + 1u : tile;
    const unsigned log = tile - axis.shift;  // a tile has 2^this places of the level above, and its end
    axis.first = tile_at << log;
    axis.coarse = tile == 0 ? 1 : least((1u << log) + 1, level.coarse[a] - axis.first);
    axis.count = axis.coarse;
    if ((plan.point_class >> a & 1) != 0) {
      const std::uint32_t all = plan.extents[a];
      axis.count = all > axis.first ? least(1u << log, all - axis.first) : 0;
      axis.odd = 1u << level.level;
    }
    return axis;
  }

  /// From the points one and three steps on both sides; those of weight 0 may not be there.
  [[gnu::always_inline]] constexpr Word interpolated(std::uint32_t weights, std::uint32_t to, std::uint32_t step,
                                                     std::size_t lane) const {
    InterpUnsigned<Word> sum = 0;
    unroll<4>([&](auto k) {
      const auto weight = static_cast<std::int8_t>(weights >> (8 * k) & 0xFF);
      const std::uint32_t from = to + step * (2 * static_cast<std::uint32_t>(k) - 3);
      if (weight != 0) sum += interp_term(weight, X::load(values + from, lane));
    });
    return interp_rounded(static_cast<Word>(sum));
  }

  /// Interpolations along the last axes come first.
  [[gnu::always_inline]] static constexpr Word mean(const Word (&along)[kInterpAxes], unsigned axes) {
    if (axes == 7) return interp_mean(along[2], along[1], along[0]);
    const Word first = (axes & 4) != 0 ? along[2] : (axes & 2) != 0 ? along[1] : along[0];
    const Word second = (axes & 1) != 0 ? along[0] : (axes & 2) != 0 ? along[1] : along[2];
    return (axes & (axes - 1)) == 0 ? first : interp_mean(first, second);
  }
};

/// What the warps of a tile share but its points.
template <class X>
constexpr void fill_interp_tables(const InterpView& view, InterpTileMemory& memory, std::uint32_t warp,
                                  std::uint32_t warps) {
  X::lanes([&](std::size_t lane) {
    const std::uint32_t first = warp * kLanes + static_cast<std::uint32_t>(lane);
    for (std::uint32_t i = first; i < view.job->level_count; i += warps * kLanes)
      X::store(memory.levels + i, lane, X::load(view.levels + i, lane));
    for (std::uint32_t i = first; i < view.job->class_count; i += warps * kLanes)
      X::store(memory.classes + i, lane, X::load(view.classes + i, lane));
    for (std::uint32_t i = first; i < kInterpKinds * kInterpEdges; i += warps * kLanes) {
      const std::uint32_t edge = i % kInterpEdges;
      const InterpWeights weights =
          interp_weights(static_cast<InterpKind>(i / kInterpEdges), (edge & 1) != 0, edge >= 2, edge >= 4);
      std::uint32_t bytes = 0;
      unroll<4>([&](auto k) { bytes |= std::uint32_t{static_cast<std::uint8_t>(weights[k])} << (8 * k); });
      X::store(memory.weights[i / kInterpEdges] + edge, lane, bytes);
    }
  });
}

}  // namespace quern::kernels
