// The residuals of a class in levels. One warp takes them, 32 points (a window) at a time in the order in which they
// are coded, and all that it waits for lies in memory that the warps share: another warp has written down for each
// point what is known of its context, and where magnitudes lie that the class itself gives. What was taken the other
// warps put into its place.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/entropy/warp/residual_stream.h"
#include "kernels/stencil/level_job.h"
#include "kernels/stencil/warp/level_grid.h"
#include "kernels/stencil/warp/level_steps.h"
#include "kernels/stencil/warp/residual_streams.h"

namespace quern::kernels {

/// Points of the class that are as near as this, counted in the order of coding, are found in LevelNear. Those farther
/// away have their residuals in the grid when a window is written down, two blocks ahead.
inline constexpr std::uint32_t kNearPoints = 2048;
inline constexpr std::uint32_t kFarPoints = 3 * kLevelBlockWindows * kLanes + 2 * kLanes;
static_assert(kFarPoints + 2 * kLanes <= kNearPoints);

/// Magnitudes of the last points by their number, one that is 0, and some for lanes without a point.
struct LevelNear {
  std::uint32_t magnitudes[kNearPoints + 1 + kLanes];
};

/// What is known of a point before those before it are.
struct alignas(16) LevelPoint {
  std::uint32_t context = 0;
  std::uint16_t left = 0;  ///< bytes from the begin of LevelNear: in the row before, and in the plane before
  std::uint16_t right = 0;
  std::uint16_t above = 0;
  std::uint16_t back = 0;
  std::uint32_t own = 0;  ///< its own; odd if it has no residual
};

/// Two blocks of points and two of residuals: one is written while the other one is read.
struct LevelBlocks {
  LevelPoint points[2][kLevelBlockWindows][kLanes];
  std::int32_t residuals[2][kLevelBlockWindows][kLanes];
};

/// A class as those who write down its points and put away its residuals see it.
template <class X>
class LevelPoints {
 public:
  constexpr LevelPoints(const JobTask& task, const LevelGridView& grid, const LevelSweep& sweep)
      : task_(task), grid_(grid), sweep_(sweep), view_(grid.stage->views[sweep.parity_class]), plan_(*sweep.plan) {
    columns_ = view_.extents[kLastAxis];
    run_ = view_.extents[2];
  }

  /// Writes down a window's points.
  constexpr void stage(const LevelWindow& window, LevelPoint* points) const {
    const std::uint32_t stage_points = grid_.stage->points[kLastAxis];
    const std::uint32_t parity = class_parity(sweep_.parity_class, kLastAxis);
    const auto beyond_left = static_cast<std::uint32_t>(mirrored_index(stage_points, parity, -1));
    const auto beyond_right =
        static_cast<std::uint32_t>(mirrored_index(stage_points, parity, static_cast<std::int32_t>(columns_)));
    const bool near_above = columns_ < kFarPoints;
    const bool near_back = run_ * columns_ < kFarPoints;
    X::lanes([&](std::size_t lane) {
      const std::uint32_t number = window.base + static_cast<std::uint32_t>(lane);
      constexpr auto kNone = static_cast<std::uint16_t>(kNearPoints * sizeof(std::uint32_t));
      LevelPoint point{0, kNone, kNone, kNone, kNone, 0};
      point.own = kNone + static_cast<std::uint32_t>((1 + lane) * sizeof(std::uint32_t)) + 1;
      if (window.has(number)) {
        const Place at = place_of(number);
        const std::uint32_t x = at.x;
        point.context = X::load(grid_.residuals + at.place, lane);
        point.own = near_offset(number) + (is_special(at, lane) ? 1 : 0);
        const std::uint32_t left = x == 0 ? beyond_left : x - 1;
        const std::uint32_t right = x + 1 == columns_ ? beyond_right : x + 1;
        if ((plan_.above | plan_.sides) != 0 && at.row % run_ != 0) {
          if (near_above) {
            const std::uint32_t row = number - columns_ - x;
            point.left = near_offset(row + left);
            point.right = near_offset(row + right);
            point.above = near_offset(row + x);
          } else {
            const std::uint32_t row = at.place - x - view_.stride;
            point.context += plan_.above * magnitude(row + x, lane) +
                             plan_.sides * (magnitude(row + left, lane) + magnitude(row + right, lane));
          }
        }
        if (plan_.back != 0 && at.row / run_ % view_.extents[1] != 0) {
          if (near_back)
            point.back = near_offset(number - run_ * columns_);
          else
            point.context += plan_.back * magnitude(at.place - run_ * view_.stride, lane);
        }
      }
      X::store(points + lane, lane, point);
    });
  }

  /// Values of a window's points, from its residuals.
  constexpr void set(const LevelWindow& window, const std::int32_t* residuals) const {
    const LevelJob& job = *grid_.job;
    const auto quantum = static_cast<std::uint64_t>(grid_.stage->quantum);
    X::lanes([&](std::size_t lane) {
      const std::uint32_t number = window.base + static_cast<std::uint32_t>(lane);
      if (!window.has(number)) return;
      const Place at = place_of(number);
      const std::int32_t residual = X::load(residuals + lane, lane);
      auto value = std::bit_cast<std::int64_t>(X::load(grid_.values + at.place, lane));
      if (is_special(at, lane)) {
        value = value < job.low ? job.low : value > job.high ? job.high : value;
      } else {
        value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) +
                                          static_cast<std::uint64_t>(std::int64_t{residual}) * quantum);
      }
      X::store(grid_.residuals + at.place, lane, static_cast<std::uint32_t>(residual));
      // Encoders keep values below 2^51; others are cut so that binary64 holds them.
      X::store(grid_.values + at.place, lane,
               static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << 11) >> 11));
    });
  }

 private:
  struct Place {
    std::uint32_t row;  ///< of the class
    std::uint32_t x;
    std::uint32_t place;
  };
  [[gnu::always_inline]] constexpr Place place_of(std::uint32_t number) const {
    const std::uint32_t row = number / columns_;
    const std::uint32_t x = number - row * columns_;
    return {row, x, view_.first + row * view_.stride + x};
  }
  [[gnu::always_inline]] static constexpr std::uint16_t near_offset(std::uint32_t number) {
    return static_cast<std::uint16_t>(number % kNearPoints * sizeof(std::uint32_t));
  }
  [[gnu::always_inline]] constexpr std::uint32_t magnitude(std::uint32_t place, std::size_t lane) const {
    return context_magnitude(X::load(grid_.residuals + place, lane));
  }
  [[gnu::always_inline]] constexpr bool is_special(const Place& at, std::size_t lane) const {
    return grid_.job->masked && level_point_is_special<X>(task_, grid_, sweep_.parity_class, at.row, at.x, lane);
  }

  const JobTask& task_;
  const LevelGridView& grid_;
  const LevelSweep& sweep_;
  const LevelView& view_;
  const ClassPlan& plan_;
  std::uint32_t columns_ = 0;
  std::uint32_t run_ = 0;
};

/// Takes the residuals of a block of windows. Called by one warp.
template <class X>
class LevelTaker {
 public:
  constexpr LevelTaker(const LevelSweep& sweep, LevelNear& near)
      : near_(reinterpret_cast<std::uint8_t*>(near.magnitudes)),
        above_(sweep.plan->above),
        sides_(sweep.plan->sides),
        back_(sweep.plan->back) {}

  /// The numbers in LevelNear of points that do not exist; once for a chunk.
  static constexpr void clear(LevelNear& near) {
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(&near.magnitudes[kNearPoints], lane, std::uint32_t{0});
    });
  }

  constexpr void run(const LevelPoint (*points)[kLanes], std::int32_t (*residuals)[kLanes], std::uint32_t windows,
                     ResidualStream<X>& stream) const {
    if (windows == 0) return;
    stream.resume();
    const bool looks = (above_ | sides_ | back_) != 0;
    Words next;
    look(points[0], next);
    for (std::uint32_t w = 0; w < windows; ++w) {
      const Words now = next;
      if (w + 1 < windows) look(points[w + 1], next);
      vec<std::uint32_t> levels;
      vec<std::int32_t> taken;
      X::lanes([&](std::size_t lane) {
        std::uint32_t context = X::get(now.context, lane);
        if (looks) {
          const std::uint32_t beside = X::get(now.beside, lane);
          const std::uint32_t before = X::get(now.before, lane);
          context += sides_ * (near(beside & 0xFFFF, lane) + near(beside >> 16, lane)) +
                     above_ * near(before & 0xFFFF, lane) + back_ * near(before >> 16, lane);
        }
        const std::uint32_t level = context_bin(context);
        X::set(levels, lane, (X::get(now.own, lane) & 1) != 0 ? kAbsentBin : level);
      });
      stream.take_window(levels, taken);
      X::lanes([&](std::size_t lane) {
        const std::int32_t residual = X::get(taken, lane);
        X::store(reinterpret_cast<std::uint32_t*>(near_ + (X::get(now.own, lane) & ~1u)), lane,
                 context_magnitude(static_cast<std::uint32_t>(residual)));
        X::store(&residuals[w][lane], lane, residual);
      });
      X::sync();
    }
    stream.pause();
  }

 private:
  template <class T>
  using vec = typename X::template vec<T>;

  /// A LevelPoint in registers.
  struct Words {
    vec<std::uint32_t> context;
    vec<std::uint32_t> beside;
    vec<std::uint32_t> before;
    vec<std::uint32_t> own;
  };
  [[gnu::always_inline]] static constexpr void look(const LevelPoint* points, Words& words) {
    X::lanes([&](std::size_t lane) {
      const LevelPoint point = X::load(points + lane, lane);
      X::set(words.context, lane, point.context);
      X::set(words.beside, lane, point.left | std::uint32_t{point.right} << 16);
      X::set(words.before, lane, point.above | std::uint32_t{point.back} << 16);
      X::set(words.own, lane, point.own);
    });
  }

  [[gnu::always_inline]] constexpr std::uint32_t near(std::uint32_t offset, std::size_t lane) const {
    return X::load(reinterpret_cast<const std::uint32_t*>(near_ + offset), lane);
  }

  std::uint8_t* near_;
  std::uint32_t above_;
  std::uint32_t sides_;
  std::uint32_t back_;
};

}  // namespace quern::kernels
