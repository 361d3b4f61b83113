// What every chunk kernel knows: its launch shape and where its chunk lies.
#pragma once

#include "kernels/core/chunk_task.h"
#include "kernels/cuda/lorenzo_cuda.h"

namespace quern::kernels {

inline constexpr unsigned kWarpsPerChunk = 8;
inline constexpr unsigned kChunkThreads = 32 * kWarpsPerChunk;

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

/// Grids the launches accept.
inline bool grid_fits(const CudaGrid& grid, TileShape tile) {
  for (std::size_t a = 0; a < 3; ++a)
    if (grid.chunk[a] == 0) return false;
  return chunk_tiles(grid, tile) <= kWarpsPerChunk && chunk_count(grid) <= 0x7fffffffu;
}

}  // namespace quern::kernels
