// What is around the points of a chunk: sums of the magnitudes of codes on both sides, from which contexts follow. A
// class sees only classes that are odd along fewer axes, and the points of the level above.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/common/unroll.h"
#include "kernels/interp/interp_job.h"

namespace quern::kernels {

template <class X>
class InterpSpreads {
 public:
  explicit constexpr InterpSpreads(const InterpView& view) : view_(view) {}

  /// Magnitudes of the coarse points of a level, in C order, from the level above. Called by all warps.
  constexpr void take_coarse(std::uint32_t level, std::uint32_t warp, std::uint32_t warps) const {
    const InterpLevelPlan& plan = view_.levels[level];
    const InterpLevelPlan& above = view_.levels[level - 1];
    const std::uint32_t count = plan.coarse[0] * plan.coarse[1] * plan.coarse[2];
    std::uint16_t* const out = magnitudes(level);
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < count; i += warps * kLanes) {
        std::uint16_t magnitude = 0;  // that of anchors
        if (level > 1) {
          const std::uint32_t place[kInterpAxes] = {i / plan.coarse[2] / plan.coarse[1],
                                                    i / plan.coarse[2] % plan.coarse[1], i % plan.coarse[2]};
          std::uint32_t point_class = 0;
          std::uint32_t index = 0;
          unroll<kInterpAxes>([&](auto a) {
            const bool halved = (above.halved >> a & 1) != 0;
            const std::uint32_t odd = halved ? place[a] & 1 : 0;
            point_class |= odd << a;
            const std::uint32_t extent = odd != 0 ? above.points[a] - above.coarse[a] : above.coarse[a];
            index = index * extent + (halved ? place[a] >> 1 : place[a]);
          });
          magnitude = magnitude_at(level - 1, point_class, index, lane);
        }
        X::store(out + i, lane, magnitude);
      }
    });
  }

  /// What the spreads of a class's points follow from, in registers. The class is not that of the anchors.
  class OfClass {
   public:
    constexpr OfClass(const InterpSpreads& spreads, const InterpClassPlan& plan)
        : point_class_(plan.point_class), rows_(plan.extents[1]), columns_(plan.extents[2]) {
      const InterpLevelPlan& level = spreads.view_.levels[plan.level];
      unroll<kInterpAxes>([&](auto a) {
        Side& side = sides_[a];
        const unsigned other = point_class_ & ~(1u << a);
        side.magnitudes = other == 0 ? spreads.magnitudes(plan.level) : nullptr;
        side.codes = spreads.view_.codes + level.first[other];
        side.coarse = level.coarse[a];
        side.row = a == 2 ? level.coarse[2] : columns_;
        side.plane = side.row * (a == 1 ? level.coarse[1] : rows_);
      });
    }

    /// Of a point by its number in the class.
    [[gnu::always_inline]] constexpr std::uint32_t at(std::uint32_t number, std::size_t lane) const {
      const std::uint32_t row = number / columns_;
      const std::uint32_t plane = row / rows_;
      const std::uint32_t place[kInterpAxes] = {plane, row - plane * rows_, number - row * columns_};
      std::uint32_t sum = 0;
      unroll<kInterpAxes>([&](auto a) {
        if ((point_class_ >> a & 1) == 0) return;
        const Side& side = sides_[a];
        const std::uint32_t stride = a == 0 ? side.plane : a == 1 ? side.row : 1;
        const std::uint32_t before = place[0] * side.plane + place[1] * side.row + place[2];
        // Where there is no point behind, that before counts twice.
        const std::uint32_t after = place[a] + 1 < side.coarse ? before + stride : before;
        sum += side.magnitude(before, lane) + side.magnitude(after, lane);
      });
      return interp_spread(sum, static_cast<std::uint32_t>(popcount(point_class_)));
    }

   private:
    /// The class of the neighbours along an axis.
    struct Side {
      const std::uint16_t* magnitudes = nullptr;  ///< of the coarse points; null: it has codes
      const std::int32_t* codes = nullptr;
      std::uint32_t coarse = 0;  ///< points along the axis
      std::uint32_t row = 0;     ///< points of a row and of a plane
      std::uint32_t plane = 0;

      [[gnu::always_inline]] constexpr std::uint32_t magnitude(std::uint32_t index, std::size_t lane) const {
        return magnitudes != nullptr ? X::load(magnitudes + index, lane)
                                     : interp_magnitude(X::load(codes + index, lane));
      }
    };

    unsigned point_class_;
    std::uint32_t rows_;
    std::uint32_t columns_;
    Side sides_[kInterpAxes];
  };

 private:
  constexpr std::uint16_t* magnitudes(std::uint32_t level) const {
    return view_.work<std::uint16_t>(view_.job->magnitudes[level & 1]);
  }

  /// Of a point that a class of a level has, 0 being the coarse points.
  [[gnu::always_inline]] constexpr std::uint16_t magnitude_at(std::uint32_t level, std::uint32_t point_class,
                                                              std::uint32_t index, std::size_t lane) const {
    if (point_class == 0) return X::load(magnitudes(level) + index, lane);
    return interp_magnitude(X::load(view_.codes + view_.levels[level].first[point_class] + index, lane));
  }

  const InterpView& view_;
};

}  // namespace quern::kernels
