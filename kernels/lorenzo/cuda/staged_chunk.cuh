// Which chunks are encoded from staged tiles, and how a warp asks for a tile.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/common/cuda/async_copy.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/lorenzo/cuda/entry_points.h"
#include "kernels/lorenzo/tile_record.h"
#include "kernels/lorenzo/warp/staged_tile.h"

namespace quern::kernels {

/// Tiles that a chunk may have, a power of two; its records stand side by side.
[[gnu::always_inline]] constexpr std::uint32_t staged_tiles_most(Element element) {
  return max_chunk_tiles(element_bytes(element));
}

/// Tiles along each axis of a chunk that is made of whole tiles, each number a power of two, as it is in every chunk
/// that the format's rule makes (docs/format-lorenzo.md, section 2). No tiles: some are cut off.
struct StagedGrid {
  std::uint32_t log_x = 0;
  std::uint32_t log_y = 0;
  std::uint32_t count = 0;
};

template <TileShape S>
__device__ __forceinline__ StagedGrid staged_grid(const ChunkBox& box) {
  constexpr auto kSize = tile_extents(S);
  const auto z = static_cast<std::uint32_t>(box.extents[0]);
  const auto y = static_cast<std::uint32_t>(box.extents[1]);
  const auto x = static_cast<std::uint32_t>(box.extents[2]);
  const std::uint32_t nz = z / kSize[0], ny = y / kSize[1], nx = x / kSize[2];
  StagedGrid grid;
  const bool whole = z % kSize[0] == 0 && y % kSize[1] == 0 && x % kSize[2] == 0;
  if (S == TileShape::line) {
    if (whole && nz * ny == 1) grid.count = nx;
    return grid;
  }
  if (!whole || (nx & (nx - 1)) != 0 || (ny & (ny - 1)) != 0) return grid;
  grid.log_x = bit_length(nx) - 1;
  grid.log_y = bit_length(ny) - 1;
  grid.count = nz << (grid.log_x + grid.log_y);
  return grid;
}

/// Its place in memory: payloads are copied in blocks of 16 bytes.
__device__ __forceinline__ std::uint8_t* tile_slots(const LorenzoSlots& slots, const CudaChunk& chunk) {
  return slots.at + std::uint64_t{chunk.slot} * slots.bytes;
}

/// Tiles of a chunk of `rules` that are staged, 0 where the chunk is encoded another way.
template <TileShape S>
__device__ __forceinline__ StagedGrid staged_tiles(const CudaChunk& chunk, const LorenzoSlots& slots,
                                                   std::uint32_t most) {
  StagedGrid grid = staged_grid<S>(chunk.box);
  const bool aligned = (reinterpret_cast<std::uintptr_t>(tile_slots(slots, chunk)) & 15) == 0;
  if (!aligned || grid.count > most) grid.count = 0;
  return grid;
}

/// First element of a tile, counted from the chunk's.
template <TileShape S>
__device__ __forceinline__ std::uint64_t staged_offset(const StagedGrid& grid, const ChunkBox& box,
                                                       std::uint32_t tile) {
  constexpr auto kSize = tile_extents(S);
  if constexpr (S == TileShape::line) return kTileElems * tile;
  const std::uint32_t x = tile & ((1u << grid.log_x) - 1);
  const std::uint32_t y = tile >> grid.log_x & ((1u << grid.log_y) - 1);
  const std::uint32_t z = tile >> (grid.log_x + grid.log_y);
  return z * kSize[0] * box.strides[0] + y * kSize[1] * box.strides[1] + x * kSize[2];
}

/// Asks for a whole tile, in blocks of 16 bytes where all runs begin at multiples of that.
template <TileShape S>
__device__ __forceinline__ void fetch_tile(const std::uint32_t* tile, const ChunkBox& box, std::uint32_t* stage) {
  const std::uint32_t lane = WarpLanes::lane();
  const std::uint64_t step = S == TileShape::line ? kLanes : box.strides[1];
  std::uint64_t all = reinterpret_cast<std::uintptr_t>(tile);
  if (S != TileShape::line) all |= 4 * box.strides[1];
  if (S == TileShape::block) all |= 4 * box.strides[0];
  if ((all & 15) == 0) {
    constexpr unsigned kRunsAtOnce = 4;
    const std::uint32_t run = lane / 8, at = 4 * (lane % 8);
    const std::uint32_t* from = tile + run * step + at;
    unroll<kRows / kRunsAtOnce>([&](auto k) {
      constexpr unsigned kFirst = kRunsAtOnce * static_cast<unsigned>(decltype(k)::value);
      const std::uint64_t before =
          S == TileShape::block ? kFirst / kGroupRows * box.strides[0] + kFirst % kGroupRows * step : kFirst * step;
      copy_async<16>(stage + stage_cell<S>(kFirst + run, at), from + before);
    });
    return;
  }
  rolled(0, kGroups, [&](unsigned g) {
    const std::uint32_t* from = tile + (S == TileShape::block ? g * box.strides[0] : kGroupRows * g * step) + lane;
    unroll<kGroupRows>([&](auto j) {
      copy_async<4>(stage + stage_cell<S>(kGroupRows * g + j, lane), from);
      from += step;
    });
  });
}

/// The same for elements of any width, run after run. Blocks of 16 bytes are on their way when this returns, elements of
/// other addresses are there.
template <TileShape S>
__device__ __forceinline__ void fetch_elements(const std::uint8_t* tile, std::uint32_t bytes, const ChunkBox& box,
                                               std::uint8_t* stage) {
  const std::uint32_t lane = WarpLanes::lane();
  const std::uint64_t step_y = bytes * (S == TileShape::line ? kLanes : box.strides[1]);
  const std::uint64_t step_z = S == TileShape::block ? bytes * box.strides[0] : kGroupRows * step_y;
  const auto run_at = [&](std::uint32_t run) { return tile + (run / kGroupRows * step_z + run % kGroupRows * step_y); };
  if (((reinterpret_cast<std::uintptr_t>(tile) | step_y | step_z) & 15) == 0) {
    const std::uint32_t log_blocks = bit_length(2 * bytes) - 1;  // of a run
    rolled(0, 2 * bytes, [&](unsigned k) {
      const std::uint32_t block = kLanes * k + lane;
      const std::uint32_t at = block & (2 * bytes - 1);
      copy_async<16>(stage + 16 * block, run_at(block >> log_blocks) + 16 * at);
    });
    return;
  }
  const auto copy = [&](auto word) {
    using Word = decltype(word);
    in_eights(0, kRows, [&](unsigned run) {
      reinterpret_cast<Word*>(stage)[kLanes * run + lane] = reinterpret_cast<const Word*>(run_at(run))[lane];
    });
  };
  switch (bytes) {
    case 1: copy(std::uint8_t{}); break;
    case 2: copy(std::uint16_t{}); break;
    case 4: copy(std::uint32_t{}); break;
    default: copy(std::uint64_t{}); break;
  }
}

}  // namespace quern::kernels
