// The values of tiles from codes and anchors, and the elements they become, by the warps of a thread block. A tile is
// worked on with its ends, the planes of points that it shares with the tiles behind it: nothing that interpolates them
// lies outside. So every tile is decoded by itself; where tiles meet, points are decoded more than once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/common/number_elements.h"
#include "kernels/common/unroll.h"
#include "kernels/common/warp/put_element.h"
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

template <class X, class Word>
class InterpTileDecoder {
 public:
  constexpr InterpTileDecoder(const InterpView& view, InterpTileMemory& memory)
      : view_(view), job_(*view.job), memory_(memory), values_(reinterpret_cast<Word*>(memory.points)) {
    unroll<kInterpAxes>([&](auto a) { tiles_[a] = ((job_.extents[a] - 1) >> job_.tile_logs[a]) + 1; });
  }

  constexpr std::uint32_t tiles() const { return tiles_[0] * tiles_[1] * tiles_[2]; }

  /// Tile `number` in C order.
  template <class Block>
  constexpr void decode(Block& block, std::uint32_t number) {
    at_[2] = number % tiles_[2];
    at_[1] = number / tiles_[2] % tiles_[1];
    at_[0] = number / tiles_[2] / tiles_[1];
    unroll<kInterpAxes>([&](auto a) {
      const unsigned log = job_.tile_logs[a];
      const std::uint32_t left = job_.extents[a] - (at_[a] << log);
      own_[a] = least(1u << log, left);
      reach_[a] = log == 0 ? 1 : least((1u << log) + 1, left);
    });
    block.all([&](std::uint32_t warp, std::uint32_t /*warps*/) {
      if (warp == 0) take_anchors();
    });
    for (std::uint32_t level = 1; level < job_.level_count; ++level) {
      // A class sees only those that are odd along fewer axes.
      for (unsigned odd = 1; odd <= kInterpAxes; ++odd) {
        const InterpLevelPlan& plan = memory_.levels[level];
        bool any = false;
        for (std::uint32_t c = plan.class_begin; c < plan.class_end; ++c)
          any = any || popcount(memory_.classes[c].point_class) == odd;
        if (!any) continue;
        block.all([&](std::uint32_t warp, std::uint32_t warps) {
          for (std::uint32_t c = plan.class_begin; c < plan.class_end; ++c)
            if (popcount(memory_.classes[c].point_class) == odd) decode_class(memory_.classes[c], plan, warp, warps);
        });
      }
    }
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      with_number_element(job_.element, [&](auto element) {
        store<decltype(element)>(warp, warps);
        return 0;
      });
    });
  }

  /// Writes the exceptions of the tiles number % slices == slice, which are decoded.
  constexpr void store_exceptions(std::uint32_t slice, std::uint32_t slices, std::uint32_t warp,
                                  std::uint32_t warps) const {
    const auto* const exceptions = view_.table<JobException>(job_.exceptions);
    const std::size_t width = element_bytes(job_.element);
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < job_.exception_count;
           i += warps * kLanes) {
        const std::uint32_t row = exceptions[i].index / job_.extents[2];
        const std::uint32_t place[kInterpAxes] = {row / job_.extents[1], row % job_.extents[1],
                                                  exceptions[i].index - row * job_.extents[2]};
        std::uint32_t tile = 0;
        unroll<kInterpAxes>([&](auto a) { tile = tile * tiles_[a] + (place[a] >> job_.tile_logs[a]); });
        if (tile % slices != slice) continue;
        put_element<X>(view_.task->out, width, place[0] * job_.strides[0] + place[1] * job_.strides[1] + place[2],
                       exceptions[i].bits, lane);
      }
    });
  }

 private:
  [[gnu::always_inline]] static constexpr std::uint32_t least(std::uint32_t a, std::uint32_t b) {
    return a < b ? a : b;
  }
  /// Where a point of the tile lies, counted in points from its first one.
  [[gnu::always_inline]] constexpr std::uint32_t position(std::uint32_t z, std::uint32_t y, std::uint32_t x) const {
    return (z * reach_[1] + y) * reach_[2] + x;
  }

  /// Its corners.
  constexpr void take_anchors() const {
    const Word* const anchors = view_.work<Word>(job_.anchors);
    const std::uint32_t* const points = memory_.levels[0].points;
    X::lanes([&](std::size_t lane) {
      if (lane >= 1u << kInterpAxes) return;
      std::uint32_t from = 0;
      std::uint32_t to = 0;
      bool there = true;
      unroll<kInterpAxes>([&](auto a) {
        const std::uint32_t end = static_cast<std::uint32_t>(lane) >> a & 1;
        there = there && (end == 0 || (job_.tile_logs[a] > 0 && at_[a] + 1 < points[a]));
        from = from * points[a] + at_[a] + end;
        to = to * reach_[a] + (end << job_.tile_logs[a]);
      });
      if (there) X::store(values_ + to, lane, X::load(anchors + from, lane));
    });
  }

  /// How the places of a class along an axis lie in the tile.
  struct ClassAxis {
    std::uint32_t count = 0;   ///< places in the tile
    std::uint32_t first = 0;   ///< of those in the chunk
    std::uint32_t coarse = 0;  ///< places of the level above in the tile
    std::uint32_t shift = 0;   ///< place number i lies at (i << shift) + odd
    std::uint32_t odd = 0;
  };
  constexpr ClassAxis class_axis(const InterpClassPlan& plan, const InterpLevelPlan& level, std::uint32_t a,
                                 std::uint32_t at) const {
    const unsigned tile = job_.tile_logs[a];
    ClassAxis axis;
    axis.shift = level.level + 1u < tile ? level.level + 1u : tile;
    const unsigned log = tile - axis.shift;  // a tile has 2^this places of the level above, and its end
    axis.first = at << log;
    axis.coarse = tile == 0 ? 1 : least((1u << log) + 1, level.coarse[a] - axis.first);
    axis.count = axis.coarse;
    if ((plan.point_class >> a & 1) != 0) {
      const std::uint32_t all = plan.extents[a];
      axis.count = all > axis.first ? least(1u << log, all - axis.first) : 0;
      axis.odd = 1u << level.level;
    }
    return axis;
  }

  constexpr void decode_class(const InterpClassPlan& plan, const InterpLevelPlan& level, std::uint32_t warp,
                              std::uint32_t warps) const {
    const ClassAxis axes[kInterpAxes] = {class_axis(plan, level, 0, at_[0]), class_axis(plan, level, 1, at_[1]),
                                         class_axis(plan, level, 2, at_[2])};
    const InterpBox box(axes[0].count, axes[1].count, axes[2].count);
    // Copies: what is read in the loop lies in registers then, as stores could not change it.
    const InterpPredictor predictor = plan.predictor;
    const std::uint32_t* const weights = memory_.weights[static_cast<std::size_t>(predictor.kind)];
    const std::int32_t* const codes = view_.codes + plan.first;
    const std::uint32_t extents[kInterpAxes] = {plan.extents[0], plan.extents[1], plan.extents[2]};
    const std::uint32_t strides[kInterpAxes] = {reach_[1] * reach_[2], reach_[2], 1};
    const unsigned level_number = level.level;
    const unsigned fraction_bits = job_.fraction_bits;
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t n = warp * kLanes + static_cast<std::uint32_t>(lane); n < box.count(); n += warps * kLanes) {
        const InterpBox::Place i = box.place(n);
        std::uint32_t code = 0;
        std::uint32_t to = 0;
        unroll<kInterpAxes>([&](auto a) {
          code = code * extents[a] + axes[a].first + i.at[a];
          to += ((i.at[a] << axes[a].shift) + axes[a].odd) * strides[a];
        });
        const std::int32_t residual = X::load(codes + code, lane);
        Word along[kInterpAxes] = {};
        unroll<kInterpAxes>([&](auto a) {
          if ((predictor.axes >> a & 1) == 0) return;
          const std::uint32_t behind = axes[a].coarse - 1 - i.at[a];
          const std::uint32_t edge = (i.at[a] > 0 ? 1u : 0u) + 2 * least(behind, 2);
          along[a] = interpolated(X::load(weights + edge, lane), to, strides[a] << level_number, lane);
        });
        X::store(values_ + to, lane, interp_value(mean(along, predictor.axes), residual, fraction_bits));
      }
    });
  }

  /// From the points one and three steps on both sides; those of weight 0 may not be there.
  [[gnu::always_inline]] constexpr Word interpolated(std::uint32_t weights, std::uint32_t to, std::uint32_t step,
                                                     std::size_t lane) const {
    InterpUnsigned<Word> sum = 0;
    unroll<4>([&](auto k) {
      const auto weight = static_cast<std::int8_t>(weights >> (8 * k) & 0xFF);
      const std::uint32_t from = to + step * (2 * static_cast<std::uint32_t>(k) - 3);
      if (weight != 0) sum += interp_term(weight, X::load(values_ + from, lane));
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

  template <class Element>
  constexpr void store(std::uint32_t warp, std::uint32_t warps) const {
    const InterpBox box(own_[0], own_[1], own_[2]);
    auto* const out = static_cast<typename Element::Bits*>(view_.task->out) +
                      (std::uint64_t{at_[0]} << job_.tile_logs[0]) * job_.strides[0] +
                      (std::uint64_t{at_[1]} << job_.tile_logs[1]) * job_.strides[1] +
                      (std::uint64_t{at_[2]} << job_.tile_logs[2]);
    const std::uint64_t strides[2] = {job_.strides[0], job_.strides[1]};
    const double unit = job_.unit;
    const double base = job_.base;
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t n = warp * kLanes + static_cast<std::uint32_t>(lane); n < box.count(); n += warps * kLanes) {
        const auto [at] = box.place(n);
        const Word value = X::load(values_ + position(at[0], at[1], at[2]), lane);
        X::store(out + at[0] * strides[0] + at[1] * strides[1] + at[2], lane,
                 Element::bits(interp_number(value, unit, base)));
      }
    });
  }

  const InterpView& view_;
  const InterpJob& job_;
  InterpTileMemory& memory_;
  Word* values_;
  std::uint32_t tiles_[kInterpAxes] = {};
  std::uint32_t at_[kInterpAxes] = {};     ///< the tile, counted in tiles
  std::uint32_t own_[kInterpAxes] = {};    ///< its extents without its end
  std::uint32_t reach_[kInterpAxes] = {};  ///< and with it
};

/// Decodes every `slices`-th tile of a chunk from tile `slice` on, and their exceptions. Codes and anchors are decoded.
template <class X, class Block>
constexpr void decode_interp_tiles(Block& block, const JobTask& task, std::uint32_t slice, std::uint32_t slices,
                                   InterpTileMemory& memory) {
  const InterpView view(task);
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
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
  });
  const auto run = [&](auto decoder) {
    for (std::uint32_t tile = slice; tile < decoder.tiles(); tile += slices) decoder.decode(block, tile);
    if (view.job->exception_count == 0) return;
    block.all([&](std::uint32_t warp, std::uint32_t warps) { decoder.store_exceptions(slice, slices, warp, warps); });
  };
  if (view.job->wide)
    run(InterpTileDecoder<X, std::int64_t>(view, memory));
  else
    run(InterpTileDecoder<X, std::int32_t>(view, memory));
}

}  // namespace quern::kernels
