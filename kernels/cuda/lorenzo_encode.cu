// Encoding: a CTA for each chunk, a warp for each tile, each chunk to a slot of its own.
#include "kernels/core/lane_encode.h"
#include "kernels/cuda/chunk_box.cuh"
#include "kernels/cuda/launches.cuh"
#include "kernels/cuda/warp_lanes.cuh"

namespace quern::kernels {
namespace {

template <TileShape S, class Q, class Exact>
__global__ void __launch_bounds__(kChunkThreads)
    encode_chunks(const __grid_constant__ ChunkRules rules, const __grid_constant__ CudaGrid grid,
                  const typename Q::Bits* in, std::uint8_t* slots, std::uint64_t slot_bytes, std::uint64_t* sizes) {
  using X = WarpLanes;
  using W = typename Q::Word;
  __shared__ LaneBuffer<W> buffers[kWarpsPerChunk];
  __shared__ LaneTileInfo infos[kWarpsPerChunk];
  const PlacedBox placed = placed_box(grid, blockIdx.x);
  const auto counts = tile_counts(placed.box, S);
  const auto tiles = static_cast<std::uint32_t>(counts[0] * counts[1] * counts[2]);
  const std::uint32_t tile = threadIdx.x / 32;
  const auto* const chunk = in + placed.offset;
  LanePlace place;
  LaneMarks<X> marks;
  if (tile < tiles) {
    place = lane_place<S>(placed.box, tile);
    W q[kRows], z[kRows];
    LaneTileInfo info;
    encode_lanes<X, S, Q, Exact>(rules, make_quantizer<Q>(rules.params), chunk, place, q, z, marks, buffers[tile],
                                 info);
    if (X::lane() == 0) infos[tile] = info;
  }
  __syncthreads();
  if (tile >= tiles) return;
  const std::uint32_t bytes =
      place_lanes<X, S>(infos, tile, tiles, chunk, place, marks, buffers[tile], slots + blockIdx.x * slot_bytes);
  if (threadIdx.x == 0) sizes[blockIdx.x] = bytes;
}

}  // namespace

void launch_encode(const ChunkRules& rules, const CudaGrid& grid, const void* in, std::uint8_t* slots,
                   std::uint64_t slot_bytes, std::uint64_t* sizes, cudaStream_t stream) {
  using Q = AbsQuantizer32<Binary32>;
  using Exact = ExactQuantizer<std::uint32_t, true, true>;
  const auto chunks = static_cast<unsigned>(chunk_count(grid));
  const auto* elements = static_cast<const std::uint32_t*>(in);
  switch (rules.tile) {
    case TileShape::line:
      encode_chunks<TileShape::line, Q, Exact>
          <<<chunks, kChunkThreads, 0, stream>>>(rules, grid, elements, slots, slot_bytes, sizes);
      break;
    case TileShape::plane:
      encode_chunks<TileShape::plane, Q, Exact>
          <<<chunks, kChunkThreads, 0, stream>>>(rules, grid, elements, slots, slot_bytes, sizes);
      break;
    case TileShape::block:
      encode_chunks<TileShape::block, Q, Exact>
          <<<chunks, kChunkThreads, 0, stream>>>(rules, grid, elements, slots, slot_bytes, sizes);
      break;
  }
}

}  // namespace quern::kernels
