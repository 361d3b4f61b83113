// From an element type and an enforced bound to the numbers the kernels work with, and their stored form.
#pragma once

#include <cstdint>
#include <span>

#include <quern/array.h>
#include <quern/bound.h>
#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "kernels/core/chunk_task.h"

namespace quern::codec::lorenzo {

/// How the array's axes become the three axes of the grid: [0, first) [first, second) [second, rank).
struct Layout {
  kernels::TileShape tile = kernels::TileShape::line;
  std::uint8_t first = 0;
  std::uint8_t second = 0;

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// The grid of a layout: merged extents, and chunks of 4 (8-byte elements), 8 or 16 (1-byte) tiles.
ChunkGrid make_grid(const Shape& shape, const Layout& layout, DType dtype);

/// Quantizer for a bound: step, reciprocal and the largest error, all rounded so that the bound cannot be missed.
/// Falls back to exact codes where the working type has no step (bound 0, lossless, below the smallest number).
kernels::ChunkRules make_rules(DType dtype, const EnforcedBound& bound, const Layout& layout);

/// Codec parameters as stored.
Vector<std::uint8_t> write_params(const kernels::ChunkRules& rules, const Layout& layout);
/// Reads them back; `corrupt` when they break a rule.
Status read_params(std::span<const std::uint8_t> bytes, DType dtype, const Shape& shape, kernels::ChunkRules& rules,
                   Layout& layout);

}  // namespace quern::codec::lorenzo
