// The chunk kernels: a CTA for each chunk, a warp for each tile. One kernel serves all quantizers of an element width;
// which one it is, is the same in all CTAs of an array. Included by one source file for each width.
#pragma once

#include <type_traits>

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/lorenzo/cuda/chunk_tiles.cuh"
#include "kernels/lorenzo/cuda/launches.cuh"
#include "kernels/lorenzo/cuda/sample.cuh"
#include "kernels/lorenzo/warp/encode.h"
#include "kernels/lorenzo/warp/segment_scan.h"

namespace quern::kernels {

/// What the architecture allows without spilling: most on Hopper, where it was measured.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
inline constexpr unsigned kHopper = 1;
inline constexpr unsigned kWordEncoders = 3;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr unsigned kHopper = 0;
inline constexpr unsigned kWordEncoders = 1;
#else
inline constexpr unsigned kHopper = 0;
inline constexpr unsigned kWordEncoders = 2;
#endif

/// Tiles that a warp encodes: a CTA with a warp for each of 16 tiles would have too few registers.
constexpr unsigned tiles_per_encoder(std::size_t element_size) { return element_size == 1 ? 2 : 1; }
template <class Bits>
inline constexpr unsigned kEncodeThreads = kChunkThreads<Bits> / tiles_per_encoder(sizeof(Bits));

/// CTAs that an SM should hold, which bounds the registers: 16 warps, and 8 to 24 where words have 32 bits.
constexpr unsigned encoders_per_sm(std::size_t element_size) {
  return element_size == 8 ? 4 : element_size == 1 ? 1 + kHopper : kWordEncoders;
}
/// The loop over a list takes more registers, and is not what counts.
constexpr unsigned list_encoders_per_sm(std::size_t element_size) { return element_size == 8 ? 2 : 1; }

/// CTAs for a list of chunks, at most.
inline constexpr unsigned kListEncoders = 512;

/// What the warps of an encoding CTA share, besides a buffer for each tile.
struct EncodeShared {
  ChunkTiles tiles;
  LaneTileInfo infos[kMaxTilesPerChunk];
  LaneScan scans[kMaxTilesPerChunk];
  LaneChunkPlan plan;
  const void* in;
  std::uint8_t* out;
  bool coded;  ///< else the chunk is no smaller than its values
};
template <class Bits>
using EncodeBuffer = LaneBuffer<CodeWord<Bits>>;

template <class Bits>
__device__ __forceinline__ std::uint32_t raw_size(const ChunkBox& box) {
  return static_cast<std::uint32_t>(box.extents[0] * box.extents[1] * box.extents[2] * sizeof(Bits));
}

/// Looks at a tile for the scan of its segment. An absolute quantizer refuses what is not finite and minus zeros, so
/// that a tile without exceptions has none of them.
template <TileShape S, class Bits>
__device__ __forceinline__ void scan_tile(const ChunkTiles& tiles, const LaneTileInfo& info, const Bits* chunk,
                                          const LanePlace& place, std::uint32_t phase, const ScanRequest& scan,
                                          LaneScan& out) {
  using X = WarpLanes;
  const ChunkRules& rules = tiles.rules;
  LaneScan found;
  scan_pairs<X, S>(chunk + place.offset, place, phase, found);
  const bool suspect = is_float(rules.element) &&
                       (rules.quantizer != QuantizerKind::absolute || info.head.exact || info.head.exceptions);
  if (suspect || scan.fill_count != 0)
    scan_values<X, S>(rules.element, chunk + place.offset, place, {scan.fills, scan.fill_count}, found);
  if (X::lane() == 0) out = found;
}

__device__ __forceinline__ ChunkScan sum_scans(const LaneScan* scans, std::uint32_t tiles) {
  ChunkScan sum;
  for (std::uint32_t t = 0; t < tiles; ++t) {
    sum.equal_pairs += scans[t].equal_pairs;
    sum.negative_zeros += scans[t].negative_zeros;
    sum.mandatory |= scans[t].any_mandatory ? 1u : 0u;
  }
  return sum;
}

/// Calls f for each tile of a chunk that the calling warp encodes.
template <class Bits, class F>
__device__ __forceinline__ void for_own_tiles(std::uint32_t tiles, F&& f) {
  const std::uint32_t warp = threadIdx.x / kLanes;
  if constexpr (tiles_per_encoder(sizeof(Bits)) == 1) {
    if (warp < tiles) f(warp);
  } else {
    for (std::uint32_t tile = warp; tile < tiles; tile += blockDim.x / kLanes) f(tile);
  }
}

/// Encodes a chunk to its slot; taken() says which, and is asked again rather than kept in registers.
template <TileShape S, class Bits, class Taken>
__device__ __forceinline__ void encode_chunk(const ChunkRules& rules, const LorenzoChunks& chunks,
                                             const LorenzoSlots& slots, const ScanRequest& scan, std::uint32_t* sizes,
                                             const Taken& taken) {
  using X = WarpLanes;
  auto& shared = shared_memory<EncodeShared>();
  ChunkTiles& tiles = shared.tiles;
  auto* const buffers = shared_array<EncodeShared, EncodeBuffer<Bits>>();
  if (threadIdx.x < kLanes) {
    const CudaChunk& chunk = chunks.at[taken()];
    share_tiles<S, tiles_per_encoder(sizeof(Bits))>(rules, chunk.box, tiles);
    if (threadIdx.x == 0) {
      shared.in = chunk.values;
      shared.out = slots.at + std::uint64_t{chunk.slot} * slots.bytes;
    }
  }
  __syncthreads();
  if (tiles.count == 0) return;
  // What is known of the chunk stays in memory while tiles are coded, where it takes no registers.
  for_own_tiles<Bits>(tiles.count, [&](std::uint32_t tile) {
    encode_lanes<X, S>(tiles.rules, static_cast<const Bits*>(shared.in), tiles.places[tile], buffers[tile],
                       shared.infos[tile]);
    __syncwarp();
    if (scan.counts != nullptr) {
      const CudaChunk& chunk = chunks.at[taken()];
      scan_tile<S>(tiles, shared.infos[tile], static_cast<const Bits*>(shared.in), tiles.places[tile],
                   tile_phase<S>(chunk, tile), scan, shared.scans[tile]);
    }
  });
  __syncthreads();
  if (threadIdx.x < kLanes) {
    plan_lane_chunk<X>(shared.infos, tiles.count, shared.plan);
    __syncwarp();
    const CudaChunk& chunk = chunks.at[taken()];
    const std::uint32_t raw_bytes = raw_size<Bits>(chunk.box);
    const std::uint32_t bytes = shared.plan.bytes;
    if (threadIdx.x == 0) {
      sizes[chunk.slot] = bytes;
      shared.coded = bytes < raw_bytes;
      if (scan.counts != nullptr) scan.counts[chunk.slot] = sum_scans(shared.scans, tiles.count);
    }
  }
  __syncthreads();
  const auto* const in = static_cast<const Bits*>(shared.in);
  std::uint8_t* const out = shared.out;
  if (!shared.coded || out == nullptr) return;  // there may be no slots
  for_own_tiles<Bits>(tiles.count, [&](std::uint32_t tile) {
    place_lanes<X, S>(shared.plan, shared.infos[tile], tile, in, tiles.places[tile], buffers[tile], out);
  });
  if (threadIdx.x < kLanes) put_lane_heads<X>(shared.plan, shared.infos, tiles.count, out);
}

/// Encodes each chunk of the arrays with one tile shape to its slot. One kernel for several shapes would need more
/// registers than there are.
template <TileShape S, class Bits>
__global__ void __launch_bounds__(kEncodeThreads<Bits>, encoders_per_sm(sizeof(Bits)))
    encode_chunks(const __grid_constant__ LorenzoChunks chunks, const __grid_constant__ LorenzoSlots slots,
                  const __grid_constant__ ScanRequest scan, std::uint32_t* sizes) {
  const ChunkRules& rules = rules_of_item(chunks, blockIdx.x / chunks.chunks);
  if (rules.tile != S) return;
  encode_chunk<S, Bits>(rules, chunks, slots, scan, sizes, [] { return std::uint64_t{blockIdx.x}; });
}

/// The chunks of a list, whose length the host does not know.
template <TileShape S, class Bits>
__global__ void __launch_bounds__(kEncodeThreads<Bits>, list_encoders_per_sm(sizeof(Bits)))
    encode_listed_chunks(const __grid_constant__ LorenzoChunks chunks, const __grid_constant__ LorenzoSlots slots,
                         std::uint32_t* sizes) {
  for (std::uint32_t i = blockIdx.x; i < *chunks.listed; i += gridDim.x) {
    const auto taken = [&] { return std::uint64_t{chunks.list[i]}; };
    const ChunkRules& rules = rules_of_item(chunks, static_cast<std::uint32_t>(taken()) / chunks.chunks);
    if (rules.tile == S) encode_chunk<S, Bits>(rules, chunks, slots, {}, sizes, taken);
    __syncthreads();
  }
}

/// A CTA for each place, with warps for as many tiles as a chunk may have.
template <class Bits>
cudaError_t launch_encode_width(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan,
                                std::uint32_t* sizes, cudaStream_t stream) {
  constexpr unsigned kEach = tiles_per_encoder(sizeof(Bits));
  LaunchShape shape{chunks.items * chunks.chunks, kLanes * ((chunks.tiles + kEach - 1) / kEach),
                    shared_size<EncodeShared, EncodeBuffer<Bits>>(chunks.tiles)};
  if (chunks.listed != nullptr) {
    if (shape.blocks > kListEncoders) shape.blocks = kListEncoders;
    return launch_shapes(
        chunks, shape, stream, [](auto tile) { return &encode_listed_chunks<tile.value, Bits>; }, slots, sizes);
  }
  return launch_shapes(
      chunks, shape, stream, [](auto tile) { return &encode_chunks<tile.value, Bits>; }, slots, scan, sizes);
}

template <class Bits>
cudaError_t launch_sample_width(const LorenzoChunks& chunks, std::uint32_t* costs, std::uint32_t* bytes,
                                cudaStream_t stream) {
  const LaunchShape shape{chunks.items * chunks.chunks, kLanes, sizeof(SampleShared<Bits>)};
  if (costs != nullptr) return launch(&estimate_tiles<Bits>, shape, stream, chunks, costs);
  if constexpr (sizeof(Bits) == 8) {
    // A kernel of all shapes would have a stack. The encoder without slots tells no more than what a chunk takes.
    return launch_encode_width<Bits>(chunks, {}, {}, bytes, stream);
  } else {
    return launch(&measure_tiles<Bits>, shape, stream, chunks, bytes);
  }
}

}  // namespace quern::kernels
