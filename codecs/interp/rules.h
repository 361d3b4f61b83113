// What all chunks of an array share: how axes are merged, tiles, the cut into chunks, and how each class of points is
// predicted; and their stored form.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <quern/bound.h>
#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "kernels/interp/geometry.h"
#include "kernels/interp/predict.h"

namespace quern::codec::interp {

/// How the array's axes become the three axes of the grid, [0, first) [first, second) [second, rank), and the tiles.
struct Layout {
  kernels::InterpTile tile;
  std::uint8_t first = 0;
  std::uint8_t second = 0;

  friend bool operator==(const Layout&, const Layout&) = default;
};

/// By level and class less one. Those of classes that the tiles do not have mean nothing.
using Predictors =
    std::array<std::array<kernels::InterpPredictor, kernels::kInterpClasses>, kernels::kInterpMaxTileLog>;

/// Chunks have at most this many elements.
inline constexpr std::uint64_t kChunkElems = UINT64_C(1) << 19;

bool supports(DType dtype, BoundKind kind);

/// The grid of a layout: merged extents, and chunks of whole tiles that are about as long along every axis.
ChunkGrid make_grid(const Shape& shape, const Layout& layout);

/// Calls visit(level, class) for every class of the tiles in the order of coding.
template <class Visit>
void for_classes(const kernels::InterpTile& tile, const Visit& visit) {
  for (unsigned level = tile.levels(); level-- > 0;) {
    const unsigned axes = tile.axes(level);
    for (const std::uint8_t c : kernels::kInterpClassOrder)
      if ((c & ~axes) == 0) visit(level, c);
  }
}

/// Codec parameters as stored.
Vector<std::uint8_t> write_params(const Layout& layout, const Predictors& predictors);
/// Reads them back; `corrupt` when they break a rule.
Status read_params(std::span<const std::uint8_t> bytes, const Shape& shape, Layout& layout, Predictors& predictors);

}  // namespace quern::codec::interp
