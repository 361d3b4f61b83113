// The levels and classes of a chunk as tables of a device's job, and the memory that a job works in.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <quern/memory.h>

#include "codecs/interp/chunk.h"
#include "codecs/interp/head.h"
#include "codecs/interp/level_grid.h"
#include "kernels/interp/interp_job.h"
#include "libcompress/core/element_of.h"

namespace quern::codec::interp {

inline std::uint32_t job_number(std::uint64_t n) { return static_cast<std::uint32_t>(n); }

/// Whether a device has room for a whole tile and its ends.
inline bool device_takes(const kernels::InterpTile& tile) {
  std::uint64_t points = 1;
  for (const std::uint8_t log : tile.logs) points *= log == 0 ? 1 : (std::uint64_t{1} << log) + 1;
  return points <= kernels::kInterpMostTilePoints;
}

/// The anchors, then the classes that have points, and the levels that have such classes.
struct JobTables {
  JobTables(const kernels::InterpTile& tile, const Extents& extents, const Predictors& predictors,
            const Contexts& contexts) {
    const unsigned top = tile.levels();
    for (unsigned level = top + 1; level-- > 0;) {
      const LevelShape shape(tile, level, extents);
      if (level < top && !shape.adds_points()) continue;
      kernels::InterpLevelPlan plan;
      for (std::size_t a = 0; a < kernels::kInterpAxes; ++a) {
        plan.points[a] = job_number(shape.points[a]);
        plan.coarse[a] = job_number(shape.coarse[a]);
      }
      plan.level = static_cast<std::uint8_t>(level);
      plan.halved = static_cast<std::uint8_t>(shape.halved);
      plan.class_begin = job_number(classes.size());
      if (level == top) add_class(tile, shape, 0, {}, {}, plan);
      for (const std::uint8_t c : kernels::kInterpClassOrder)
        if (level < top && (c & ~shape.halved) == 0)
          add_class(tile, shape, c, predictors[level][c - 1u], contexts[level][c - 1u], plan);
      plan.class_end = job_number(classes.size());
      levels.push_back(plan);
    }
  }

  /// Number of anchors.
  std::uint32_t anchors() const { return classes[0].count; }
  /// Points of the level above in the largest of the levels with an even and with an odd number.
  std::array<std::uint64_t, 2> coarse_points() const {
    std::array<std::uint64_t, 2> most{};
    for (std::size_t n = 1; n < levels.size(); ++n) {
      const std::uint32_t* const coarse = levels[n].coarse;
      most[n & 1] = std::max(most[n & 1], std::uint64_t{coarse[0]} * coarse[1] * coarse[2]);
    }
    return most;
  }

  Vector<kernels::InterpLevelPlan> levels;
  Vector<kernels::InterpClassPlan> classes;
  std::uint32_t coded = 0;  ///< codes of all classes

 private:
  void add_class(const kernels::InterpTile& tile, const LevelShape& shape, unsigned c,
                 kernels::InterpPredictor predictor, kernels::InterpContext context, kernels::InterpLevelPlan& level) {
    level.first[c] = coded;
    if (shape.count(c) == 0) return;
    kernels::InterpClassPlan plan;
    for (std::size_t a = 0; a < kernels::kInterpAxes; ++a)
      plan.extents[a] = job_number((c >> a & 1) != 0 ? shape.points[a] - shape.coarse[a] : shape.coarse[a]);
    plan.first = coded;
    plan.count = job_number(shape.count(c));
    plan.context = context;
    plan.predictor = predictor;
    plan.point_class = static_cast<std::uint8_t>(c);
    plan.level = static_cast<std::uint8_t>(levels.size());
    plan.section = static_cast<std::uint8_t>(section_of(tile, shape.level));
    coded += plan.count;
    classes.push_back(plan);
  }
};

/// Pieces of the memory that a job works in.
class JobWork {
 public:
  /// Bytes from its begin to room for `count` numbers of `width` bytes.
  std::uint32_t take(std::uint64_t count, std::size_t width) {
    const std::uint64_t begin = bytes_;
    bytes_ += kernels::job_aligned(count * width);
    return job_number(begin);
  }
  std::uint32_t bytes() const { return job_number(bytes_); }

 private:
  std::uint64_t bytes_ = 0;
};

/// What a job says of its chunk, with tables of that size.
inline void describe_chunk(DType dtype, const kernels::InterpTile& tile, const Extents& extents,
                           const std::array<std::uint64_t, 2>& strides, const coding::ValueFormat& values,
                           const JobTables& tables, kernels::InterpJob& job) {
  job.element = element_of(dtype);
  for (std::size_t a = 0; a < kernels::kInterpAxes; ++a) {
    job.tile_logs[a] = tile.logs[a];
    job.extents[a] = job_number(extents[a]);
  }
  job.strides[0] = strides[0];
  job.strides[1] = strides[1];
  job.fraction_bits = static_cast<std::uint8_t>(values.fraction_bits);
  job.base = values.base;
  job.unit = values.unit();
  job.level_count = job_number(tables.levels.size());
  job.class_count = job_number(tables.classes.size());
}

}  // namespace quern::codec::interp
