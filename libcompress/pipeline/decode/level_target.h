// What decoding gives: the array itself, or its points at a coarse level, with the segments and chunks they come from.
#pragma once

#include <cstdint>

#include <quern/codec.h>
#include <quern/dtype.h>
#include <quern/status.h>

#include "libcompress/core/level_points.h"
#include "libcompress/format/grid/layout.h"
#include "libcompress/pipeline/mask/mask.h"

namespace quern {

struct LevelTarget {
  unsigned level = 0;
  LevelForm form;        ///< at level 0 every place of every axis
  SegmentLayout layout;  ///< segments and chunks as boxes of what is delivered; numbered as those of the stream

  /// The array itself.
  static LevelTarget whole(const Shape& shape, const SegmentLayout& layout);
  /// Fails with `unsupported` where the codec (null: none) has no such level.
  static Result<LevelTarget> at(unsigned level, const ChunkDecoder* codec, const SegmentLayout& layout);
};

/// The mask of a segment's points, `points` along each axis. O(points); with verbatim cells O(cells). May throw
/// std::bad_alloc.
mask::SegmentMask pick_mask(const mask::SegmentMask& mask, const std::array<std::uint64_t, 3>& extents,
                            const LevelForm& form, const std::array<std::uint64_t, 3>& points);

/// Shapes of all coarse levels of a stream; empty without a codec.
Vector<Shape> level_shapes(const ChunkDecoder* codec);

}  // namespace quern
