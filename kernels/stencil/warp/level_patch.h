// How the points of a class in one plane are shared out: patches of rows and columns, a few points to a lane of a warp,
// whatever the length of rows; and groups of patches, in whose order they are coded.
#pragma once

#include <cstdint>

#include "kernels/common/unroll.h"
#include "kernels/stencil/level_job.h"
#include "kernels/stencil/warp/level_grid.h"

namespace quern::kernels {

/// Points of a patch that a lane has: 1, 2 or 4. With more of them fewer instructions are spent on where neighbours
/// lie, with fewer more warps have a patch.
inline constexpr std::uint32_t kPatchPoints = 2;

/// The points of a class in one plane.
struct LevelSweep {
  std::uint32_t parity_class = 0;
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  const ClassPlan* plan = nullptr;
};

/// Sweeps of a level: a class in a plane each, class after class, plane after plane.
[[gnu::always_inline]] constexpr std::uint32_t level_sweeps(const LevelGridView& grid) {
  return grid.job->planes() * grid.stage->class_count;
}
/// One of them. `plans`: the job's table.
constexpr LevelSweep level_sweep(const LevelGridView& grid, const ClassPlan* plans, std::uint32_t number) {
  const LevelStage& stage = *grid.stage;
  const std::uint32_t plane = number / stage.class_count;
  const std::uint32_t place = number % stage.class_count;
  LevelSweep sweep;
  sweep.parity_class = stage.classes[place];
  sweep.rows = stage.views[sweep.parity_class].rows / grid.job->planes();
  sweep.first_row = plane * sweep.rows;
  sweep.plan = plans + stage.plans[plane > 0 ? 1 : 0] + place;
  return sweep;
}

/// Rows beside each other along axis 2, and columns.
struct LevelPatch {
  std::uint32_t row = 0;   ///< counted in the sweep
  std::uint32_t rows = 0;  ///< kPatchPoints at most
  std::uint32_t begin = 0;
  std::uint32_t columns = 0;  ///< of the whole row
  unsigned column_bits = 0;   ///< point k of a lane lies k >> column_bits rows down

  /// Rows down to point k of a lane; not below `rows` where there is none.
  [[gnu::always_inline]] constexpr std::uint32_t down(std::uint32_t k) const { return k >> column_bits; }
  [[gnu::always_inline]] constexpr std::uint32_t column(std::uint32_t k, std::size_t lane) const {
    return begin + (k & ((1u << column_bits) - 1)) * kLanes + static_cast<std::uint32_t>(lane);
  }
};

/// The patches of a sweep. Those of the same rows are a group.
struct LevelPatches {
  std::uint32_t columns = 0;
  std::uint32_t run = 1;  ///< rows beside each other
  std::uint32_t rows = 0;
  unsigned column_bits = 0;
  std::uint32_t group_rows = 0;
  std::uint32_t groups_of_run = 0;
  std::uint32_t groups = 0;
  std::uint32_t patches_of_group = 0;

  constexpr LevelPatches() = default;
  constexpr LevelPatches(const LevelView& view, const LevelSweep& sweep)
      : columns(view.extents[kLastAxis]), run(view.extents[2]), rows(sweep.rows) {
    if (sweep.rows < run) run = sweep.rows;  // rows along a sequential axis
    while ((kLanes << column_bits) < columns && (1u << column_bits) < kPatchPoints) ++column_bits;
    group_rows = kPatchPoints >> column_bits;
    groups_of_run = (run + group_rows - 1) / group_rows;
    groups = rows / run * groups_of_run;
    const std::uint32_t width = kLanes << column_bits;
    patches_of_group = (columns + width - 1) / width;
  }

  constexpr std::uint32_t count() const { return groups * patches_of_group; }
  /// First row of a group; of the number after the last one, all rows.
  constexpr std::uint32_t first_row(std::uint32_t group) const {
    return group / groups_of_run * run + group % groups_of_run * group_rows;
  }
  /// Groups whose rows are among the first.
  constexpr std::uint32_t groups_before(std::uint32_t row) const {
    return row / run * groups_of_run + row % run / group_rows;
  }
  constexpr LevelPatch patch(std::uint32_t number) const {
    const std::uint32_t group = number / patches_of_group;
    const std::uint32_t row = first_row(group);
    const std::uint32_t left = run - row % run;
    return {row, left < group_rows ? left : group_rows, number % patches_of_group * (kLanes << column_bits), columns,
            column_bits};
  }
};

}  // namespace quern::kernels
