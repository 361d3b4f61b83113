// Points of boxes and masks.
#include "libcompress/pipeline/decode/level_target.h"

#include <algorithm>
#include <cstring>

namespace quern {

LevelTarget LevelTarget::whole(const Shape& shape, const SegmentLayout& layout) {
  LevelTarget target;
  target.form.shape = shape;
  target.layout = layout;
  return target;
}

Result<LevelTarget> LevelTarget::at(unsigned level, const ChunkDecoder* codec, const SegmentLayout& layout) {
  const unsigned levels = codec != nullptr ? codec->levels() : 0;
  if (levels == 0)
    return Status(StatusCode::unsupported, "the stream has no coarse levels: its codec or layout does not make them");
  if (level > levels)
    return Status(StatusCode::unsupported, "the stream has {0} coarse levels; level {1} was asked for",
                  static_cast<std::int64_t>(levels), static_cast<std::int64_t>(level));
  LevelTarget target;
  target.level = level;
  target.form = codec->level_form(level);
  ChunkGrid grid;
  for (std::size_t a = 0; a < 3; ++a) {
    grid.extents[a] = target.form.axes[a].points(layout.grid().extents[a]);
    grid.chunk[a] = target.form.axes[a].points(layout.grid().chunk[a]);
  }
  if (grid.counts() != layout.grid().counts() ||
      grid.extents[0] * grid.extents[1] * grid.extents[2] != target.form.shape.elems())
    return Status(StatusCode::internal, "the chunks of level {0} do not lie side by side",
                  static_cast<std::int64_t>(level));
  target.layout = SegmentLayout(grid, layout.dtype());
  return target;
}

mask::SegmentMask pick_mask(const mask::SegmentMask& mask, const std::array<std::uint64_t, 3>& extents,
                            const LevelForm& form, const std::array<std::uint64_t, 3>& points) {
  mask::SegmentMask out;
  out.specials = mask.specials;
  out.classes.resize(static_cast<std::size_t>(points[0] * points[1] * points[2]));
  pick_points(mask.classes.data(), extents, form, 1, {out.classes.data(), points, {points[1] * points[2], points[2]}});
  out.masked = static_cast<std::uint64_t>(
      std::count_if(out.classes.begin(), out.classes.end(), [](std::uint8_t c) { return c != 0; }));
  if (out.masked == 0) return {};
  if (mask.verbatim.empty()) return out;
  // Points come in the order of the cells: those before each are counted on the way.
  std::uint64_t counted = 0;
  std::uint64_t before = 0;
  for (std::uint64_t p = 0; p < out.classes.size(); ++p) {
    if (out.classes[p] != mask::kVerbatimClass) continue;
    const std::uint64_t row = p / points[2];
    const std::uint64_t cell =
        (form.axes[0].place(row / points[1]) * extents[1] + form.axes[1].place(row % points[1])) * extents[2] +
        form.axes[2].place(p % points[2]);
    for (; counted < cell; ++counted) before += mask.classes[counted] == mask::kVerbatimClass ? 1 : 0;
    out.verbatim.push_back(mask.verbatim[before]);
  }
  return out;
}

Vector<Shape> level_shapes(const ChunkDecoder* codec) {
  Vector<Shape> shapes;
  for (unsigned level = 1; codec != nullptr && level <= codec->levels(); ++level)
    shapes.push_back(codec->level_form(level).shape);
  return shapes;
}

}  // namespace quern
