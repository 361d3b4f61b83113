// The part of an array that layouts are tried on: a box of its own axes, copied, so that every layout sees the same
// elements however it merges them.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>

#include <quern/codec.h>
#include <quern/status.h>

#include "libcompress/core/buffer.h"

namespace quern::codec::stencil {

/// An array in C order.
struct TrialArray {
  Shape shape;
  std::size_t element_bytes = 0;
  AlignedBuffer values;
  AlignedBuffer special;  ///< a byte an element
  bool has_special = false;
  bool gaps = false;  ///< special elements were met, here or at other places where the box might have lain

  /// The first chunk of a grid over it.
  ConstBox3 first_chunk(const ChunkGrid& grid) const { return chunk(grid, 0); }
  /// The i-th one, in C order; smaller at the upper ends.
  ConstBox3 chunk(const ChunkGrid& grid, std::uint64_t i) const;
};

/// Extents of the box: the longest axes of what the sample holds halved until there are at most `most` elements. All
/// of a smaller array.
Shape trial_shape(const Shape& array, std::uint64_t sample_elems, std::uint64_t most);

/// The same with whole planes and rows as far as possible: merged axes go on there as they do in the array.
Shape slab_shape(const Shape& array, std::uint64_t sample_elems, std::uint64_t most);

/// About how many bits the difference of two neighbours takes, in codes of `inverse` a unit.
inline std::uint64_t difference_bits(double a, double b, double inverse) {
  const double d = std::fabs(a - b) * inverse;
  return d < 0x1p62 ? static_cast<std::uint64_t>(std::bit_width(static_cast<std::uint64_t>(d * 4))) : 0;
}

/// True when the last axis seems to go on from the end of a row to the beginning of the next, as a series does that was
/// cut into rows.
Result<bool> rows_go_on(const PlanRequest& request);

/// Copies a box of that shape, special values replaced: of some places all over what the sample holds the one that
/// stands for all, told by how much neighbours differ; or the one of that number.
Result<TrialArray> take_trial_array(const PlanRequest& request, const Shape& shape,
                                    std::optional<std::uint64_t> number = std::nullopt);

/// Copies all of an array that the sample holds, read as one box: special values are found as in one segment.
Result<TrialArray> take_whole_array(const PlanRequest& request);

}  // namespace quern::codec::stencil
