// Packs: elements of a whole tile that a lane writes at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lorenzo/tile.h"

namespace quern::kernels {

/// Up to 16 bytes.
[[gnu::always_inline]] constexpr unsigned pack_elems(std::size_t element_size) { return element_size == 8 ? 2 : 4; }

/// Whether all packs of a tile whose first element is at `tile` begin at multiples of their size; strides in elements.
[[gnu::always_inline]] constexpr bool packs_aligned(TileShape shape, std::uint64_t stride_z, std::uint64_t stride_y,
                                                    const void* tile, std::size_t element_size) {
  std::uint64_t all = reinterpret_cast<std::uintptr_t>(tile);
  if (shape != TileShape::line) all |= stride_y * element_size;
  if (shape == TileShape::block) all |= stride_z * element_size;
  return (all & (pack_elems(element_size) * element_size - 1)) == 0;
}

}  // namespace quern::kernels
