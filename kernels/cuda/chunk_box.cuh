// What every chunk kernel knows: its launch shape and where its chunk lies.
#pragma once

#include <cuda_runtime.h>

#include "kernels/core/chunk_task.h"
#include "kernels/core/lane_tile.h"
#include "kernels/core/tile_code.h"
#include "kernels/cuda/lorenzo_cuda.h"

namespace quern::kernels {

/// Tiles of the largest chunk of elements that wide (docs/format-lorenzo.md, section 2).
constexpr unsigned max_chunk_tiles(std::size_t element_size) {
  return element_size == 8 ? 4 : element_size == 1 ? kMaxTilesPerChunk : 8;
}

/// The tiles of a chunk, in memory that its warps share. Offsets count from the array's first element.
struct ChunkTiles {
  LanePlace places[kMaxTilesPerChunk];
  std::uint32_t count;
};

/// A chunk's box, and the offset of its first element in the array.
struct PlacedBox {
  ChunkBox box;
  std::uint64_t offset = 0;
};

__device__ __forceinline__ PlacedBox placed_box(const CudaGrid& grid, std::uint64_t chunk) {
  std::uint64_t index[3];
  for (int a = 2; a >= 0; --a) {
    const std::uint64_t count = (grid.extents[a] + grid.chunk[a] - 1) / grid.chunk[a];
    index[a] = chunk % count;
    chunk /= count;
  }
  PlacedBox placed;
  placed.box.strides = {grid.extents[1] * grid.extents[2], grid.extents[2]};
  for (int a = 0; a < 3; ++a) {
    const std::uint64_t begin = index[a] * grid.chunk[a];
    const std::uint64_t left = grid.extents[a] - begin;
    placed.box.extents[a] = left < grid.chunk[a] ? left : grid.chunk[a];
    placed.offset += begin * (a == 2 ? 1 : placed.box.strides[a]);
  }
  return placed;
}

/// Places the tiles of a chunk, one by each lane of the calling warp; returns how many there are. The other warps see
/// them after the CTA's next barrier.
template <TileShape S>
__device__ __forceinline__ std::uint32_t place_tiles(const CudaGrid& grid, std::uint64_t chunk, ChunkTiles& tiles) {
  const PlacedBox placed = placed_box(grid, chunk);
  const auto counts = tile_counts(placed.box, S);
  const auto count = static_cast<std::uint32_t>(counts[0] * counts[1] * counts[2]);
  const std::uint32_t tile = threadIdx.x % kLanes;
  if (tile < count) {
    LanePlace place = lane_place<S>(placed.box, tile);
    place.offset += placed.offset;
    tiles.places[tile] = place;
  }
  if (tile == 0) tiles.count = count;
  return count;
}

/// Grids the launches accept.
inline bool grid_fits(const CudaGrid& grid, const ChunkRules& rules) {
  for (std::size_t a = 0; a < 3; ++a)
    if (grid.chunk[a] == 0) return false;
  return chunk_tiles(grid, rules.tile) <= max_chunk_tiles(element_bytes(rules.element)) &&
         chunk_count(grid) <= 0x7fffffffu;
}

}  // namespace quern::kernels
