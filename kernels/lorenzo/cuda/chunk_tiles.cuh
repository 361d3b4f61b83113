// What the CTA of a chunk begins with: the rules of its array and the tiles of its chunk, in shared memory.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "kernels/common/cuda/launch.cuh"
#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/cuda/entry_points.h"
#include "kernels/lorenzo/tile_code.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

/// Threads of a CTA with a warp for each tile of a chunk.
template <class Bits>
inline constexpr unsigned kChunkThreads = max_chunk_tiles(sizeof(Bits)) * kLanes;

/// What the warps of a CTA share of their chunk. Offsets count from the chunk's first element.
struct ChunkTiles {
  ChunkRules rules;
  LanePlace places[kMaxTilesPerChunk];
  std::uint32_t count;
};

/// The rules of an array.
__device__ __forceinline__ const ChunkRules& rules_of_item(const LorenzoChunks& chunks, std::uint32_t item) {
  return *reinterpret_cast<const ChunkRules*>(chunks.rules + item * chunks.rules_stride);
}

/// Calls f with the tile shape as a constant: all CTAs of an array take the same way through a kernel that has the code
/// of all shapes.
template <class F>
__device__ __forceinline__ void with_shape(TileShape tile, F&& f) {
  unroll<3>([&](auto s) {
    constexpr auto kShape = static_cast<TileShape>(decltype(s)::value);
    if (tile == kShape) f(std::integral_constant<TileShape, kShape>{});
  });
}

/// Launches the kernel of each tile shape that occurs. kernel_of() takes the shape as a constant.
template <class KernelOf, class... Arguments>
cudaError_t launch_shapes(const LorenzoChunks& chunks, const LaunchShape& shape, cudaStream_t stream,
                          KernelOf&& kernel_of, Arguments... arguments) {
  cudaError_t error = cudaSuccess;
  unroll<3>([&](auto s) {
    constexpr auto kShape = static_cast<TileShape>(decltype(s)::value);
    if ((chunks.shapes >> s & 1) == 0 || error != cudaSuccess) return;
    error = launch(kernel_of(std::integral_constant<TileShape, kShape>{}), shape, stream, chunks, arguments...);
  });
  return error;
}

/// Tiles of a chunk; one of more than the CTA's warps take, `Each` of them a warp, is cut short.
template <TileShape S, unsigned Each = 1>
__device__ __forceinline__ std::uint32_t tiles_of_cta(const ChunkBox& box) {
  const auto counts = tile_counts(box, S);
  const auto all = static_cast<std::uint32_t>(counts[0] * counts[1] * counts[2]);
  const std::uint32_t most = Each * (blockDim.x / kLanes);
  return all < most ? all : most;
}

/// Brings rules and tiles to shared memory, one tile by each lane of the calling warp. The other warps see them after
/// the CTA's next barrier.
template <TileShape S, unsigned Each = 1>
__device__ __forceinline__ void share_tiles(const ChunkRules& rules, const ChunkBox& box, ChunkTiles& tiles) {
  const std::uint32_t count = tiles_of_cta<S, Each>(box);
  const std::uint32_t tile = threadIdx.x % kLanes;
  if (tile < count) tiles.places[tile] = lane_place<S>(box, tile);
  static_assert(sizeof(ChunkRules) % sizeof(std::uint32_t) == 0);
  const auto* const from = reinterpret_cast<const std::uint32_t*>(&rules);
  auto* const to = reinterpret_cast<std::uint32_t*>(&tiles.rules);
  for (std::size_t i = tile; i < sizeof(ChunkRules) / sizeof(std::uint32_t); i += kLanes) to[i] = from[i];
  if (tile == 0) tiles.count = count;
}

/// Phase of a tile of a chunk (kernels/mask/scan.h): tiles are 32 cells wide, or 32 pieces of 32.
template <TileShape S>
__device__ __forceinline__ std::uint32_t tile_phase(const CudaChunk& chunk, std::uint32_t tile) {
  if constexpr (S == TileShape::line) return chunk.phase;
  return chunk.phase + tile % static_cast<std::uint32_t>(tile_counts(chunk.box, S)[2]);
}

}  // namespace quern::kernels
