// In which steps the warps of a chunk decode a level: what one of them takes, and what the others predict, set and
// finish meanwhile. The plan of a step follows from that of the step before; it is kept in memory that warps share, as
// all of it would take many registers.
#pragma once

#include <cstdint>

#include "kernels/stencil/level_job.h"
#include "kernels/stencil/warp/level_grid.h"
#include "kernels/stencil/warp/level_patch.h"

namespace quern::kernels {

/// Windows of a block, 32 points each: enough for all warps to have something to do, few enough to begin soon.
inline constexpr std::uint32_t kLevelBlockWindows = 20;

/// Up to 32 points of a class that are taken together, a lane of the warp each. Points have numbers, over all planes.
struct LevelWindow {
  std::uint32_t base = 0;  ///< of lane 0: a multiple of 32
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  constexpr bool has(std::uint32_t number) const { return number >= begin && number < end; }
};

/// Points of a class that are worked on together.
struct LevelBlock {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t columns = 0;
  std::uint32_t windows_of_row = 0;  ///< 0: windows go on over the ends of rows

  constexpr std::uint32_t windows() const {
    if (begin == end) return 0;
    if (windows_of_row != 0) return (end - begin) / columns * windows_of_row;
    return (end + kLanes - 1) / kLanes - begin / kLanes;
  }
  constexpr LevelWindow window(std::uint32_t number) const {
    std::uint32_t first = begin;
    std::uint32_t last = end;
    std::uint32_t place = number;
    if (windows_of_row != 0) {
      first = begin + number / windows_of_row * columns;
      last = first + columns;
      place = number % windows_of_row;
    }
    const std::uint32_t base = (first / kLanes + place) * kLanes;
    return {base, base > first ? base : first, base + kLanes < last ? base + kLanes : last};
  }
};

struct LevelStep {
  LevelSweep now;
  LevelSweep ahead;  ///< what is predicted: the sweep itself at first, then the next one
  LevelPatches ahead_patches;
  std::uint32_t quota = 0;   ///< patches that a step predicts at most, so that all steps have their share
  std::uint32_t number = 0;  ///< of the sweep
  std::uint32_t turn = 0;    ///< 0, 1, 0, 1, ...
  bool opening = false;      ///< the sweep itself is predicted
  bool done = false;         ///< there is nothing to do, and no step after this one
  /// What is written down, taken, and gets values, each block one step after the other.
  LevelBlock stage;
  LevelBlock take;
  LevelBlock set;
  /// Rows that get halos, of those complete: counted in the sweep.
  std::uint32_t finish_row = 0;
  std::uint32_t finish_rows = 0;
  std::uint32_t predict_begin = 0;
  std::uint32_t predict_end = 0;  ///< patches
};

/// The steps of a level, whose sweeps are coded one after another.
class LevelSteps {
 public:
  constexpr LevelSteps(const JobTask& task, const LevelGridView& grid)
      : grid_(grid), plans_(LevelGridView::table<ClassPlan>(task, grid.job->plans)) {
    // The slowest axis along which neighbours lie.
    while (axis_ < kLastAxis && (!grid.job->hierarchical(axis_) || grid.stage->points[axis_] == 1)) ++axis_;
  }

  constexpr LevelStep begin() const { return open(0, 0); }

  constexpr LevelStep after(const LevelStep& before) const {
    LevelStep step = before;
    step.turn = before.turn ^ 1;
    step.predict_begin = before.predict_end;
    if (before.opening) {
      look_ahead(step);
    } else {
      step.finish_row = before.finish_row + before.finish_rows;
      step.finish_rows = complete_rows(step, before.set.end) - step.finish_row;
      if (step.finish_row == step.now.rows) {
        if (step.number + 1 < count()) return open(step.number + 1, step.predict_begin);
        step.done = true;
        return step;
      }
      step.set = before.take;
      step.take = before.stage;
    }
    plan(step);
    return step;
  }

 private:
  constexpr std::uint32_t count() const { return level_sweeps(grid_); }
  constexpr LevelSweep sweep(std::uint32_t number) const { return level_sweep(grid_, plans_, number); }
  constexpr const LevelView& view(const LevelSweep& sweep) const { return grid_.stage->views[sweep.parity_class]; }

  /// A sweep of which so many patches are predicted.
  constexpr LevelStep open(std::uint32_t number, std::uint32_t predicted) const {
    LevelStep step;
    step.number = number;
    step.now = sweep(number);
    const std::uint32_t columns = view(step.now).extents[kLastAxis];
    const std::uint32_t begin = step.now.first_row * columns;
    // Points that are taken together must not need each other: of rows that are short, one at a time.
    const bool by_rows = step.now.plan->looks_at_itself() && columns <= kLanes;
    const std::uint32_t windows_of_row = !by_rows ? 0 : kLanes % columns == 0 ? 1 : 2;
    step.stage = step.take = step.set = LevelBlock{begin, begin, columns, windows_of_row};
    step.ahead = step.now;
    step.ahead_patches = LevelPatches(view(step.now), step.now);
    step.predict_begin = predicted;
    step.predict_end = step.ahead_patches.count();
    step.opening = predicted < step.predict_end;
    if (step.opening) return step;
    look_ahead(step);
    plan(step);
    return step;
  }
  constexpr void look_ahead(LevelStep& step) const {
    step.opening = false;
    step.predict_begin = 0;
    if (step.number + 1 == count()) return;
    step.ahead = sweep(step.number + 1);
    step.ahead_patches = LevelPatches(view(step.ahead), step.ahead);
    const std::uint32_t blocks = step.now.rows * step.stage.columns / (kLevelBlockWindows * kLanes) + 1;
    step.quota = step.ahead_patches.count() / blocks + 3;
  }
  constexpr void plan(LevelStep& step) const {
    LevelBlock& stage = step.stage;
    const std::uint32_t end = (step.now.first_row + step.now.rows) * stage.columns;
    stage.begin = stage.end;
    if (stage.windows_of_row != 0)
      stage.end += kLevelBlockWindows / stage.windows_of_row * stage.columns;
    else
      stage.end = (stage.begin / kLanes + kLevelBlockWindows) * kLanes;
    if (stage.end > end) stage.end = end;
    step.predict_end = step.predict_begin;
    if (step.number + 1 == count()) return;
    const std::uint32_t ready = ready_rows(step.now, step.finish_row, step.ahead);
    const std::uint32_t patches = step.ahead_patches.groups_before(ready) * step.ahead_patches.patches_of_group;
    if (patches > step.predict_begin) step.predict_end = patches;
    if (step.predict_end - step.predict_begin > step.quota) step.predict_end = step.predict_begin + step.quota;
  }
  /// Rows of the sweep that end before a point.
  constexpr std::uint32_t complete_rows(const LevelStep& step, std::uint32_t number) const {
    return number / step.stage.columns - step.now.first_row;
  }

  /// How many rows of `next` have no neighbours in `now` but its first `rows` rows.
  constexpr std::uint32_t ready_rows(const LevelSweep& now, std::uint32_t rows, const LevelSweep& next) const {
    if (rows == now.rows) return next.rows;
    if (axis_ == kLastAxis) return 0;
    // Neighbours are at most two places away, beyond a border no further than that inside.
    const std::uint32_t complete = rows / rows_of_place(view(now));
    const std::uint32_t ready = complete < 2 ? 0 : complete - 2;
    return ready < view(next).extents[axis_] ? ready * rows_of_place(view(next)) : next.rows;
  }
  /// Rows that share a place along the axis.
  constexpr std::uint32_t rows_of_place(const LevelView& view) const {
    std::uint32_t rows = 1;
    for (std::uint32_t a = axis_ + 1; a < kLastAxis; ++a) rows *= view.extents[a];
    return rows;
  }

  const LevelGridView& grid_;
  const ClassPlan* plans_;
  std::uint32_t axis_ = 0;
};

}  // namespace quern::kernels
