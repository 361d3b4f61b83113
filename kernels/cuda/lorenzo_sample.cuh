// The kernel that plans rest on: what single tiles would cost. A warp for each tile. Included by one source file for
// each width of element.
#pragma once

#include "kernels/core/lane_encode.h"
#include "kernels/core/lane_estimate.h"
#include "kernels/cuda/chunk_tiles.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/cuda/warp_lanes.cuh"

namespace quern::kernels {

template <class Bits>
struct SampleShared {
  ChunkTiles tiles;
  LaneBuffer<CodeWord<Bits>> buffer;
};

/// Each place is one tile. With `costs`: what the tile takes under each predictor, estimated. Without: its bytes as a
/// chunk of its own, under the candidates of its array.
template <TileShape S, class Bits>
__global__ void __launch_bounds__(kLanes)
    sample_tiles(const __grid_constant__ LorenzoChunks chunks, std::uint32_t* costs, std::uint32_t* bytes) {
  using X = WarpLanes;
  const ChunkRules& rules = rules_of_cta(chunks);
  const CudaChunk& tile = chunks.at[blockIdx.x];
  if (rules.tile != S || tile.empty()) return;
  auto& [tiles, buffer] = shared_memory<SampleShared<Bits>>();
  share_tiles<S>(rules, tile.box, tiles);
  __syncwarp();
  const auto* const in = static_cast<const Bits*>(tile.values);
  if (costs != nullptr) {
    estimate_lanes<X, S>(tiles.rules, in, tiles.places[0], buffer, costs + std::uint64_t{blockIdx.x} * kPredictors);
    return;
  }
  LaneMarks<X> marks;
  LaneTileInfo info;
  encode_lanes<X, S>(tiles.rules, in, tiles.places[0], marks, buffer, info);
  if (X::lane() == 0) bytes[blockIdx.x] = lone_tile_bytes(info);
}

}  // namespace quern::kernels
