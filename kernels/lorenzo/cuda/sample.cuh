// The kernels that plans rest on: what single tiles would cost. A CTA for each tile. Included by one source file for
// each width of element.
#pragma once

#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/lorenzo/cuda/chunk_tiles.cuh"
#include "kernels/lorenzo/warp/encode.h"
#include "kernels/lorenzo/warp/estimate.h"

namespace quern::kernels {

template <class Bits>
struct SampleShared {
  ChunkTiles tiles;
  LaneBuffer<CodeWord<Bits>> buffer;
  LaneTileInfo info;
};

/// Each place is one tile: what it takes under each predictor, estimated.
template <class Bits>
__global__ void __launch_bounds__(kLanes)
    estimate_tiles(const __grid_constant__ LorenzoChunks chunks, std::uint32_t* costs) {
  using X = WarpLanes;
  const CudaChunk& tile = chunks.at[blockIdx.x];
  if (tile.empty()) return;
  const ChunkRules& rules = rules_of_item(chunks, blockIdx.x / chunks.chunks);
  auto& shared = shared_memory<SampleShared<Bits>>();
  with_shape(rules.tile, [&](auto shape) {
    constexpr TileShape S = decltype(shape)::value;
    share_tiles<S>(rules, tile.box, shared.tiles);
    __syncwarp();
    estimate_lanes<X, S>(shared.tiles.rules, static_cast<const Bits*>(tile.values), shared.tiles.places[0],
                         shared.buffer, costs + std::uint64_t{blockIdx.x} * kPredictors);
  });
}

/// Its bytes as a chunk of its own, under the candidates of its array.
template <class Bits>
__global__ void __launch_bounds__(kLanes)
    measure_tiles(const __grid_constant__ LorenzoChunks chunks, std::uint32_t* bytes) {
  using X = WarpLanes;
  const CudaChunk& tile = chunks.at[blockIdx.x];
  if (tile.empty()) return;
  const ChunkRules& rules = rules_of_item(chunks, blockIdx.x / chunks.chunks);
  auto& shared = shared_memory<SampleShared<Bits>>();
  with_shape(rules.tile, [&](auto shape) {
    constexpr TileShape S = decltype(shape)::value;
    share_tiles<S>(rules, tile.box, shared.tiles);
    __syncwarp();
    encode_lanes<X, S>(shared.tiles.rules, static_cast<const Bits*>(tile.values), shared.tiles.places[0], shared.buffer,
                       shared.info);
    __syncwarp();
    if (X::lane() == 0) bytes[blockIdx.x] = lone_tile_bytes(shared.info);
  });
}

}  // namespace quern::kernels
