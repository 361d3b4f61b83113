// The chunk kernels: a CTA for each chunk, a warp for each tile. One kernel serves all quantizers of an element width;
// which one it is, is the same in the whole launch. Included by one source file for each width.
#pragma once

#include "kernels/core/lane_decode.h"
#include "kernels/core/lane_encode.h"
#include "kernels/cuda/chunk_box.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launches.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/cuda/warp_lanes.cuh"

namespace quern::kernels {

template <class Bits>
inline constexpr unsigned kChunkThreads = max_chunk_tiles(sizeof(Bits)) * kLanes;

/// CTAs that an SM should hold, which bounds the registers: 24 warps; 16 to 20 where words have 64 bits, 16 where a CTA
/// has as many. Decoding lines of 64-bit words takes a few registers more.
constexpr unsigned encoders_per_sm(std::size_t element_size) {
  return element_size == 8 ? 4 : element_size == 1 ? 1 : 3;
}
constexpr unsigned decoders_per_sm(std::size_t element_size, TileShape tile) {
  return element_size == 8 && tile != TileShape::line ? 5 : encoders_per_sm(element_size);
}

/// What the warps of an encoding CTA share, besides a buffer for each tile.
struct EncodeShared {
  LaneTileInfo infos[kMaxTilesPerChunk];
  ChunkTiles tiles;
};
template <class Bits>
using EncodeBuffer = LaneBuffer<CodeWord<Bits>>;

/// Encodes each chunk to a slot of its own.
template <TileShape S, class Bits>
__global__ void __launch_bounds__(kChunkThreads<Bits>, encoders_per_sm(sizeof(Bits)))
    encode_chunks(const __grid_constant__ ChunkRules rules, const __grid_constant__ CudaGrid grid, const Bits* in,
                  std::uint8_t* slots, std::uint64_t slot_bytes, std::uint64_t* sizes) {
  using X = WarpLanes;
  auto& [infos, tiles] = shared_memory<EncodeShared>();
  auto* const buffers = shared_array<EncodeShared, EncodeBuffer<Bits>>();
  if (threadIdx.x < kLanes) place_tiles<S>(grid, blockIdx.x, tiles);
  __syncthreads();
  const std::uint32_t tile = threadIdx.x / kLanes;
  LaneMarks<X> marks;
  if (tile < tiles.count) {
    LaneTileInfo info;
    encode_lanes<X, S>(rules, in, tiles.places[tile], marks, buffers[tile], info);
    if (X::lane() == 0) infos[tile] = info;
  }
  __syncthreads();
  if (tile >= tiles.count) return;
  const std::uint32_t bytes = place_lanes<X, S>(infos, tile, tiles.count, in, tiles.places[tile], marks, buffers[tile],
                                                slots + blockIdx.x * slot_bytes);
  if (threadIdx.x == 0) sizes[blockIdx.x] = bytes;
}

/// What the warps of a decoding CTA share, besides an area for each tile.
struct DecodeShared {
  LaneHeads heads;
  ChunkTiles tiles;
  bool readable;
};
template <class Bits>
using DecodeArea = LaneArea<CodeWord<Bits>>;

/// Decodes each chunk. Offsets and bytes may be anything.
template <TileShape S, class Bits>
__global__ void __launch_bounds__(kChunkThreads<Bits>, decoders_per_sm(sizeof(Bits), S))
    decode_chunks(const __grid_constant__ ChunkRules rules, const __grid_constant__ CudaGrid grid,
                  const std::uint8_t* in, std::uint64_t total, const std::uint64_t* offsets, Bits* out,
                  std::uint32_t* damaged) {
  using X = WarpLanes;
  auto& [heads, tiles, readable] = shared_memory<DecodeShared>();
  auto* const areas = shared_array<DecodeShared, DecodeArea<Bits>>();
  const std::uint64_t begin = offsets[blockIdx.x];
  if (threadIdx.x < kLanes) {
    const std::uint32_t count = place_tiles<S>(grid, blockIdx.x, tiles);
    const std::uint64_t end = offsets[blockIdx.x + 1];
    if (threadIdx.x == 0)
      readable = begin <= end && end <= total && end - begin <= 0xffffffffu &&
                 read_heads(in + begin, static_cast<std::uint32_t>(end - begin), count, heads);
  }
  __syncthreads();
  bool good = readable;
  const std::uint32_t tile = threadIdx.x / kLanes;
  if (good && tile < tiles.count)
    good = decode_lanes<X, S>(rules, heads.heads[tile], {in + begin + heads.begins[tile], heads.heads[tile].payload},
                              tiles.places[tile], areas[tile], out);
  const int all_good = __syncthreads_and(good);
  if (threadIdx.x == 0) damaged[blockIdx.x] = all_good != 0 ? 0 : 1;
}

/// A CTA for each chunk, a warp for each tile of the largest chunk; the warps share a T and an E for each tile.
template <class T, class E>
LaunchShape chunk_launch(const CudaGrid& grid, TileShape tile) {
  const auto tiles = static_cast<unsigned>(chunk_tiles(grid, tile));
  return {static_cast<unsigned>(chunk_count(grid)), kLanes * tiles, shared_size<T, E>(tiles)};
}

template <class Bits>
cudaError_t launch_encode_width(const ChunkRules& rules, const CudaGrid& grid, const void* in, std::uint8_t* slots,
                                std::uint64_t slot_bytes, std::uint64_t* sizes, cudaStream_t stream) {
  const auto with_shape = [&](auto* kernel) {
    return launch(kernel, chunk_launch<EncodeShared, EncodeBuffer<Bits>>(grid, rules.tile), stream, rules, grid,
                  static_cast<const Bits*>(in), slots, slot_bytes, sizes);
  };
  switch (rules.tile) {
    case TileShape::line: return with_shape(&encode_chunks<TileShape::line, Bits>);
    case TileShape::plane: return with_shape(&encode_chunks<TileShape::plane, Bits>);
    case TileShape::block: return with_shape(&encode_chunks<TileShape::block, Bits>);
  }
  return cudaErrorInvalidValue;
}

template <class Bits>
cudaError_t launch_decode_width(const ChunkRules& rules, const CudaGrid& grid, const std::uint8_t* in,
                                std::uint64_t bytes, const std::uint64_t* offsets, void* out, std::uint32_t* damaged,
                                cudaStream_t stream) {
  const auto with_shape = [&](auto* kernel) {
    return launch(kernel, chunk_launch<DecodeShared, DecodeArea<Bits>>(grid, rules.tile), stream, rules, grid, in,
                  bytes, offsets, static_cast<Bits*>(out), damaged);
  };
  switch (rules.tile) {
    case TileShape::line: return with_shape(&decode_chunks<TileShape::line, Bits>);
    case TileShape::plane: return with_shape(&decode_chunks<TileShape::plane, Bits>);
    case TileShape::block: return with_shape(&decode_chunks<TileShape::block, Bits>);
  }
  return cudaErrorInvalidValue;
}

}  // namespace quern::kernels
