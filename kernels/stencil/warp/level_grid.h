// The working arrays of a chunk in levels as lanes see them: where points and their neighbours lie, halos of rows,
// the step from one level to the next, and the elements at the end.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/job_task.h"
#include "kernels/common/lanes.h"
#include "kernels/common/number_elements.h"
#include "kernels/common/unroll.h"
#include "kernels/common/warp/put_element.h"
#include "kernels/stencil/level_job.h"
#include "kernels/stencil/rules.h"

namespace quern::kernels {

/// Axes that rows are counted along: all but the last.
inline constexpr std::uint32_t kRowAxes = kLevelAxes - 1;
inline constexpr std::uint32_t kLastAxis = kLevelAxes - 1;
/// Points of a row that a lane takes at a time.
inline constexpr std::uint32_t kLanePoints = 4;
inline constexpr std::uint32_t kBlockPoints = kLanePoints * kLanes;

[[gnu::always_inline]] constexpr std::uint32_t class_parity(std::uint32_t parity_class, std::uint32_t axis) {
  return parity_class >> (kLastAxis - axis) & 1;
}

/// What a residual counts as in contexts.
[[gnu::always_inline]] constexpr std::uint32_t context_magnitude(std::uint32_t residual) {
  return capped_magnitude(residual, kMaxContextMagnitude);
}

/// A chunk under way at one level. The same in all lanes.
struct LevelGridView {
  const LevelJob* job = nullptr;
  const LevelStage* stage = nullptr;
  std::uint32_t level = 0;
  double* values = nullptr;            ///< of the level; before a point is decoded, the bits of its prediction
  std::uint32_t* residuals = nullptr;  ///< before a point is decoded, its context sum as far as it is known

  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr LevelGridView(const Task& task, std::uint32_t at_level)
      : job(reinterpret_cast<const LevelJob*>(task.job)),
        stage(table<LevelStage>(task, job->stages) + at_level),
        level(at_level),
        values(reinterpret_cast<double*>(task.work + job->values[at_level & 1])),
        residuals(reinterpret_cast<std::uint32_t*>(task.work + job->residuals[at_level & 1])) {}

  template <class T>
  [[gnu::always_inline]] static constexpr const T* table(const JobTask& task, std::uint32_t offset) {
    return reinterpret_cast<const T*>(task.job + offset);
  }
  [[gnu::always_inline]] constexpr bool live(std::uint32_t axis) const {
    return job->hierarchical(axis) && stage->points[axis] > 1;
  }
};

/// Indices of a row along the axes but the last.
struct LevelRow {
  std::uint32_t index[kRowAxes];

  [[gnu::always_inline]] constexpr LevelRow(const LevelView& view, std::uint32_t row) : index{} {
    index[2] = row % view.extents[2];
    row /= view.extents[2];
    index[1] = row % view.extents[1];
    index[0] = row / view.extents[1];
  }
};

[[gnu::always_inline]] constexpr std::uint32_t row_place(const LevelView& view, std::uint32_t i0, std::uint32_t i1,
                                                         std::uint32_t i2) {
  return view.first + ((i0 * view.extents[1] + i1) * view.extents[2] + i2) * view.stride;
}

/// Index of the same class that one beyond the grid is mirrored to.
[[gnu::always_inline]] constexpr std::int32_t mirrored_index(std::uint32_t points, std::uint32_t parity,
                                                             std::int32_t index) {
  const auto last = static_cast<std::int32_t>(points) - 1;
  if (last == 0) return 0;
  std::int32_t place = 2 * index + static_cast<std::int32_t>(parity);
  while (place < 0 || place > last) place = place < 0 ? -place : 2 * last - place;
  return (place - static_cast<std::int32_t>(parity)) / 2;
}

/// True when no tap of the row leaves the grid along an axis but the last.
[[gnu::always_inline]] constexpr bool row_is_inside(const LevelGridView& grid, const LevelRow& row) {
  bool inside = true;
  unroll<kRowAxes>([&](auto a) {
    constexpr auto kAxis = static_cast<std::uint32_t>(decltype(a)::value);
    const std::uint32_t i = row.index[kAxis];
    if (!grid.job->hierarchical(kAxis)) {
      inside = inside && i >= 2;
    } else if (grid.stage->points[kAxis] > 1) {
      inside = inside && i != 0 && i + 2 < grid.stage->points[kAxis] / 2;
    }
  });
  return inside;
}

/// Place of column 0 of a neighbouring row, seen from the point's own column; beyond the border mirrored.
[[gnu::always_inline]] constexpr std::int32_t neighbour_place(const LevelGridView& grid, const LevelRow& row,
                                                              bool inside, std::uint32_t in_class,
                                                              const std::int8_t* step) {
  const LevelView& view = grid.stage->views[in_class];
  std::int32_t place[kRowAxes] = {};
  unroll<kRowAxes>([&](auto a) {
    constexpr auto kAxis = static_cast<std::uint32_t>(decltype(a)::value);
    std::int32_t i = static_cast<std::int32_t>(row.index[kAxis]) + step[kAxis];
    if (!inside) {
      if (!grid.job->hierarchical(kAxis)) {
        i = i < 0 ? 0 : i;
      } else if (i < 0 || i >= static_cast<std::int32_t>(view.extents[kAxis])) {
        i = mirrored_index(grid.stage->points[kAxis], class_parity(in_class, kAxis), i);
      }
    }
    place[kAxis] = i;
  });
  return static_cast<std::int32_t>(row_place(view, static_cast<std::uint32_t>(place[0]),
                                             static_cast<std::uint32_t>(place[1]),
                                             static_cast<std::uint32_t>(place[2]))) +
         step[kLastAxis];
}

/// One of the places that a tap becomes in a row at the border, where values beyond lie on the line through the two
/// outermost ones, and how many there are.
struct LinearPlace {
  std::int32_t place = 0;
  std::uint32_t count = 0;
  double weight = 0;
};
inline constexpr std::uint32_t kLinearPlaces = 1u << kRowAxes;

/// Place number `choice` of a tap; of no use from their count on.
[[gnu::always_inline]] constexpr LinearPlace linear_place(const LevelGridView& grid, const LevelRow& row,
                                                          const LevelTap<double>& tap, std::uint32_t choice) {
  const LevelView& view = grid.stage->views[tap.in_class];
  double weight = tap.weight;
  std::uint32_t rows = 0;
  unsigned beyond = 0;  // axes along which there are two
  unroll<kRowAxes>([&](auto a) {
    constexpr auto kAxis = static_cast<std::uint32_t>(decltype(a)::value);
    std::int32_t i = static_cast<std::int32_t>(row.index[kAxis]) + tap.step[kAxis];
    const auto extent = static_cast<std::int32_t>(view.extents[kAxis]);
    if (!grid.job->hierarchical(kAxis)) {
      i = i < 0 ? 0 : i;
    } else if ((i < 0 || i >= extent) && extent > 1) {
      const auto second = static_cast<std::int32_t>(choice >> beyond++ & 1);
      const auto distance = static_cast<double>(i < 0 ? -i : i - extent + 1);
      weight *= second != 0 ? -distance : 1 + distance;
      i = i < 0 ? second : extent - 1 - second;
    } else if (extent == 1) {
      i = 0;
    }
    rows = rows * view.extents[kAxis] + static_cast<std::uint32_t>(i);
  });
  return {static_cast<std::int32_t>(view.first + rows * view.stride) + tap.step[kLastAxis], 1u << beyond, weight};
}

/// Whether a point of a class has no residual; only where some have none.
template <class X>
constexpr bool level_point_is_special(const JobTask& task, const LevelGridView& grid, std::uint32_t parity_class,
                                      std::uint32_t row, std::uint32_t x, std::size_t lane) {
  const LevelRow at(grid.stage->views[parity_class], row);
  const std::uint32_t index[kLevelAxes] = {at.index[0], at.index[1], at.index[2], x};
  std::uint64_t offset = 0;
  unroll<kLevelAxes>([&](auto a) {
    constexpr auto kAxis = static_cast<std::uint32_t>(decltype(a)::value);
    const std::uint64_t place = grid.job->hierarchical(kAxis)
                                    ? (2 * std::uint64_t{index[kAxis]} + class_parity(parity_class, kAxis))
                                          << grid.level
                                    : index[kAxis];
    offset += place * grid.job->special_strides[kAxis];
  });
  return X::load(task.special + offset, lane) != 0;
}

/// Sets the halos of rows that are complete, a lane each.
template <class X>
constexpr void finish_level_rows(const LevelGridView& grid, std::uint32_t parity_class, std::uint32_t first_row,
                                 std::uint32_t rows, std::uint32_t warp, std::uint32_t warps) {
  const LevelView& view = grid.stage->views[parity_class];
  const std::uint32_t columns = view.extents[kLastAxis];
  const std::uint32_t points = grid.stage->points[kLastAxis];
  const std::uint32_t parity = class_parity(parity_class, kLastAxis);
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t r = warp * kLanes + static_cast<std::uint32_t>(lane); r < rows; r += warps * kLanes) {
      double* const x = grid.values + (view.first + (first_row + r) * view.stride);
      std::uint32_t* const m = grid.residuals + (view.first + (first_row + r) * view.stride);
      unroll<kLeftHalo + kRightHalo>([&](auto place) {
        const std::int32_t i = place == 0 ? -1 : static_cast<std::int32_t>(columns + place) - 1;
        const std::int32_t inside = mirrored_index(points, parity, i);
        X::store(m + i, lane, X::load(m + inside, lane));
        if (!grid.job->linear_border || columns == 1) {
          X::store(x + i, lane, X::load(x + (grid.job->linear_border ? 0 : inside), lane));
        } else {
          const double distance = i < 0 ? 1 : static_cast<double>(place);
          const std::int32_t outer = i < 0 ? 0 : static_cast<std::int32_t>(columns) - 1;
          const std::int32_t next = i < 0 ? 1 : static_cast<std::int32_t>(columns) - 2;
          X::store(x + i, lane, (1 + distance) * X::load(x + outer, lane) + -distance * X::load(x + next, lane));
        }
      });
    }
  });
}

/// Class 0 of a level from all classes of the level above; its halos are not set.
template <class X>
constexpr void take_level_above(const LevelGridView& grid, const LevelGridView& above, std::uint32_t warp,
                                std::uint32_t warps) {
  const LevelView& view = grid.stage->views[0];
  const std::uint32_t columns = view.extents[kLastAxis];
  const std::uint32_t blocks = (columns + kBlockPoints - 1) / kBlockPoints;
  for (std::uint32_t task = warp; task < view.rows * blocks; task += warps) {
    const std::uint32_t row = task / blocks;
    const std::uint32_t begin = task % blocks * kBlockPoints;
    const LevelRow at(view, row);
    std::uint32_t row_class = 0;
    std::uint32_t index[kRowAxes] = {};
    unroll<kRowAxes>([&](auto a) {
      constexpr auto kAxis = static_cast<std::uint32_t>(decltype(a)::value);
      const bool halved = grid.job->hierarchical(kAxis);
      index[kAxis] = halved ? at.index[kAxis] >> 1 : at.index[kAxis];
      row_class = row_class << 1 | (halved ? at.index[kAxis] & 1 : 0);
    });
    const bool halved = grid.job->hierarchical(kLastAxis);
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t x = begin + static_cast<std::uint32_t>(lane); x < columns && x < begin + kBlockPoints;
           x += kLanes) {
        const LevelView& from = above.stage->views[row_class << 1 | (halved ? x & 1 : 0)];
        const std::uint32_t source = row_place(from, index[0], index[1], index[2]) + (halved ? x >> 1 : x);
        const std::uint32_t to = view.first + row * view.stride + x;
        X::store(grid.values + to, lane, X::load(above.values + source, lane));
        X::store(grid.residuals + to, lane, X::load(above.residuals + source, lane));
      }
    });
  }
}

/// Elements of a complete chunk, row after row of the box.
template <class X>
constexpr void store_level_elements(const JobTask& task, std::uint32_t warp, std::uint32_t warps) {
  const LevelGridView grid(task, 0);
  const LevelJob& job = *grid.job;
  const std::uint32_t columns = job.extents[kLastAxis];
  const std::uint32_t rows = job.extents[0] * job.extents[1] * job.extents[2];
  const std::uint32_t blocks = (columns + kBlockPoints - 1) / kBlockPoints;
  const std::size_t width = element_bytes(job.element);
  for (std::uint32_t t = warp; t < rows * blocks; t += warps) {
    const std::uint32_t begin = t % blocks * kBlockPoints;
    std::uint32_t rest = t / blocks;
    const std::uint32_t p2 = rest % job.extents[2];
    rest /= job.extents[2];
    const std::uint32_t place[kRowAxes] = {rest / job.extents[1], rest % job.extents[1], p2};
    std::uint64_t out = 0;
    std::uint32_t row_class = 0;
    std::uint32_t index[kRowAxes] = {};
    unroll<kRowAxes>([&](auto a) {
      constexpr auto kAxis = static_cast<std::uint32_t>(decltype(a)::value);
      const bool halved = job.hierarchical(kAxis);
      out += place[kAxis] * job.strides[kAxis];
      index[kAxis] = halved ? place[kAxis] >> 1 : place[kAxis];
      row_class = row_class << 1 | (halved ? place[kAxis] & 1 : 0);
    });
    const bool halved = job.hierarchical(kLastAxis);
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t x = begin + static_cast<std::uint32_t>(lane); x < columns && x < begin + kBlockPoints;
           x += kLanes) {
        const LevelView& from = grid.stage->views[row_class << 1 | (halved ? x & 1 : 0)];
        const std::uint32_t source = row_place(from, index[0], index[1], index[2]) + (halved ? x >> 1 : x);
        const double number = X::load(grid.values + source, lane) * job.unit + job.base;
        const double value = job.lattice.element(number);
        const std::uint64_t bits =
            with_number_element(job.element, [&](auto type) -> std::uint64_t { return decltype(type)::bits(value); });
        put_element<X>(task.out, width, out + x * job.strides[kLastAxis], bits, lane);
      }
    });
  }
}

/// Exceptions over the elements.
template <class X>
constexpr void store_level_exceptions(const JobTask& task, std::uint32_t warp, std::uint32_t warps) {
  const auto& job = *reinterpret_cast<const LevelJob*>(task.job);
  const auto* const exceptions = LevelGridView::table<JobException>(task, job.exceptions);
  const std::size_t width = element_bytes(job.element);
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < job.exception_count;
         i += warps * kLanes) {
      std::uint32_t rest = exceptions[i].index;
      std::uint64_t at = 0;
      unroll<kLevelAxes>([&](auto a) {
        constexpr auto kAxis = static_cast<std::uint32_t>(kLastAxis - decltype(a)::value);
        at += rest % job.extents[kAxis] * job.strides[kAxis];
        rest /= job.extents[kAxis];
      });
      put_element<X>(task.out, width, at, exceptions[i].bits, lane);
    }
  });
}

}  // namespace quern::kernels
