// The coarse levels of a whole array: arithmetic on extents only. Chunks begin at multiples of tiles, so their points
// lie side by side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <quern/codec.h>
#include <quern/shape.h>

#include "codecs/interp/rules.h"

namespace quern::codec::interp {

/// The one axis of the array longer than 1 that an axis of the grid stands for, or where it stands for several, none.
struct OneAxis {
  OneAxis(const Shape& shape, const Layout& layout, std::size_t grid_axis) {
    const std::array<std::size_t, 4> ends{0, layout.first, layout.second, shape.rank()};
    for (std::size_t a = ends[grid_axis]; a < ends[grid_axis + 1]; ++a) {
      if (shape[a] == 1) continue;
      axis = a;
      ++count;
    }
  }
  std::size_t axis = 0;
  std::size_t count = 0;
};

/// Levels beside the array itself; none where merged axes would be coarsened as one.
inline unsigned count_levels(const Shape& shape, const Layout& layout) {
  if (shape.elems() == 0) return 0;
  for (std::size_t g = 0; g < 3; ++g)
    if (layout.tile.logs[g] > 0 && OneAxis(shape, layout, g).count > 1) return 0;
  return layout.tile.levels();
}

/// The array at a level, from 1 to count_levels.
inline LevelForm array_level(const Shape& shape, const Layout& layout, unsigned level) {
  LevelForm form;
  std::array<std::uint64_t, kMaxRank> extents{};
  for (std::size_t a = 0; a < shape.rank(); ++a) extents[a] = shape[a];
  for (std::size_t g = 0; g < 3; ++g) {
    const unsigned step_log = layout.tile.step_log(level, g);
    form.axes[g].outer_step = std::uint64_t{1} << step_log;
    const OneAxis one(shape, layout, g);
    if (one.count == 1) extents[one.axis] = ((extents[one.axis] - 1) >> step_log) + 1;
  }
  form.shape = Shape::make({extents.data(), shape.rank()}).value();
  return form;
}

}  // namespace quern::codec::interp
