// Decoding: a CTA for each chunk, a warp for each tile. Offsets and bytes may be anything.
#include "kernels/core/lane_decode.h"
#include "kernels/cuda/chunk_box.cuh"
#include "kernels/cuda/launches.cuh"
#include "kernels/cuda/warp_lanes.cuh"

namespace quern::kernels {
namespace {

template <TileShape S, class Q, class Exact>
__global__ void __launch_bounds__(kChunkThreads)
    decode_chunks(const __grid_constant__ ChunkRules rules, const __grid_constant__ CudaGrid grid,
                  const std::uint8_t* in, std::uint64_t total, const std::uint64_t* offsets, typename Q::Bits* out,
                  std::uint32_t* damaged) {
  using X = WarpLanes;
  using W = typename Q::Word;
  __shared__ LaneBuffer<W> buffers[S == TileShape::line ? kWarpsPerChunk : 1];
  __shared__ LaneHeads heads;
  __shared__ bool readable;
  const PlacedBox placed = placed_box(grid, blockIdx.x);
  const auto counts = tile_counts(placed.box, S);
  const auto tiles = static_cast<std::uint32_t>(counts[0] * counts[1] * counts[2]);
  const std::uint64_t begin = offsets[blockIdx.x];
  const std::uint64_t end = offsets[blockIdx.x + 1];
  if (threadIdx.x == 0)
    readable = begin <= end && end <= total && end - begin <= 0xffffffffu &&
               read_heads(in + begin, static_cast<std::uint32_t>(end - begin), tiles, heads);
  __syncthreads();
  bool good = readable;
  const std::uint32_t tile = threadIdx.x / 32;
  if (good && tile < tiles) {
    W q[kRows];
    good = decode_lanes<X, S, Q, Exact>(make_quantizer<Q>(rules.params), heads.heads[tile],
                                        {in + begin + heads.begins[tile], heads.heads[tile].payload},
                                        lane_place<S>(placed.box, tile), q, buffers[S == TileShape::line ? tile : 0],
                                        out + placed.offset);
  }
  const int all_good = __syncthreads_and(good);
  if (threadIdx.x == 0) damaged[blockIdx.x] = all_good != 0 ? 0 : 1;
}

}  // namespace

void launch_decode(const ChunkRules& rules, const CudaGrid& grid, const std::uint8_t* in, std::uint64_t bytes,
                   const std::uint64_t* offsets, void* out, std::uint32_t* damaged, cudaStream_t stream) {
  using Q = AbsQuantizer32<Binary32>;
  using Exact = ExactQuantizer<std::uint32_t, true, true>;
  const auto chunks = static_cast<unsigned>(chunk_count(grid));
  auto* elements = static_cast<std::uint32_t*>(out);
  switch (rules.tile) {
    case TileShape::line:
      decode_chunks<TileShape::line, Q, Exact>
          <<<chunks, kChunkThreads, 0, stream>>>(rules, grid, in, bytes, offsets, elements, damaged);
      break;
    case TileShape::plane:
      decode_chunks<TileShape::plane, Q, Exact>
          <<<chunks, kChunkThreads, 0, stream>>>(rules, grid, in, bytes, offsets, elements, damaged);
      break;
    case TileShape::block:
      decode_chunks<TileShape::block, Q, Exact>
          <<<chunks, kChunkThreads, 0, stream>>>(rules, grid, in, bytes, offsets, elements, damaged);
      break;
  }
}

}  // namespace quern::kernels
