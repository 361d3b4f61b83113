// The chunk kernels: a CTA for each chunk, a warp for each tile. One kernel serves all quantizers of an element width;
// which one it is, is the same in all CTAs of an array. Included by one source file for each width.
#pragma once

#include <type_traits>

#include "kernels/core/lane_decode.h"
#include "kernels/core/lane_encode.h"
#include "kernels/core/lane_scan.h"
#include "kernels/cuda/chunk_tiles.cuh"
#include "kernels/cuda/copy_bytes.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launches.cuh"
#include "kernels/cuda/look_back.cuh"
#include "kernels/cuda/lorenzo_sample.cuh"
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
  ChunkTiles tiles;
  LaneTileInfo infos[kMaxTilesPerChunk];
  LaneScan scans[kMaxTilesPerChunk];
  std::uint8_t* out;
  std::uint32_t ticket;
};
template <class Bits>
using EncodeBuffer = LaneBuffer<CodeWord<Bits>>;

/// The calling CTA's chunk: its own number, or with places in order the next that nobody has taken, so that all chunks
/// before it are under way.
__device__ __forceinline__ std::uint64_t take_chunk(const LorenzoChunks& chunks, const LorenzoPlaces& places,
                                                    std::uint32_t& ticket) {
  if (places.states == nullptr) return blockIdx.x;
  const std::uint32_t item = blockIdx.x / chunks.chunks;
  if (threadIdx.x == 0) ticket = atomicAdd(places.tickets + item, 1u);
  __syncthreads();
  return std::uint64_t{item} * chunks.chunks + ticket;
}

/// Where a chunk of `bytes` bytes is put in order; null when it does not fit. Called by a whole warp.
__device__ __forceinline__ std::uint8_t* next_place(const LorenzoChunks& chunks, const LorenzoPlaces& places,
                                                    std::uint64_t q, std::uint32_t bytes) {
  const std::uint64_t item = q / chunks.chunks;
  const std::uint64_t before = look_back(places.states + item * chunks.chunks, q % chunks.chunks, bytes);
  const std::uint64_t offset = places.fixed[q] + before;
  const bool fits = offset <= places.capacities[item] && bytes <= places.capacities[item] - offset;
  return fits ? places.outputs[item] + offset : nullptr;
}

/// Writes the values of a chunk in C order; called by all threads of a CTA.
template <class Bits>
__device__ __forceinline__ void copy_values(const Bits* values, const ChunkBox& box, std::uint8_t* out) {
  const std::uint64_t row_bytes = box.extents[2] * sizeof(Bits);
  const std::uint64_t rows = box.extents[0] * box.extents[1];
  for (std::uint64_t r = threadIdx.x / kLanes; r < rows; r += blockDim.x / kLanes) {
    const Bits* const row = values + r / box.extents[1] * box.strides[0] + r % box.extents[1] * box.strides[1];
    copy_bytes(out + r * row_bytes, reinterpret_cast<const std::uint8_t*>(row), row_bytes, WarpLanes::lane(), kLanes);
  }
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
                       (rules.quantizer != QuantizerKind::absolute || info.head.exact || info.exceptions != 0);
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

/// Encodes each chunk, to a slot of its own or in order; arrays whose rules name another tile shape are not this
/// kernel's.
template <TileShape S, class Bits>
__global__ void __launch_bounds__(kChunkThreads<Bits>, encoders_per_sm(sizeof(Bits)))
    encode_chunks(const __grid_constant__ LorenzoChunks chunks, const __grid_constant__ LorenzoSlots slots,
                  const __grid_constant__ LorenzoPlaces places, const __grid_constant__ ScanRequest scan,
                  std::uint32_t* sizes) {
  using X = WarpLanes;
  const ChunkRules& rules = rules_of_cta(chunks);
  if (rules.tile != S) return;
  auto& shared = shared_memory<EncodeShared>();
  ChunkTiles& tiles = shared.tiles;
  auto* const buffers = shared_array<EncodeShared, EncodeBuffer<Bits>>();
  const std::uint64_t q = take_chunk(chunks, places, shared.ticket);
  const CudaChunk& chunk = chunks.at[q];
  const auto* const in = static_cast<const Bits*>(chunk.values);
  const auto raw_bytes =
      static_cast<std::uint32_t>(chunk.box.extents[0] * chunk.box.extents[1] * chunk.box.extents[2] * sizeof(Bits));
  if (raw_bytes == 0) {
    if (places.states != nullptr && threadIdx.x < kLanes) next_place(chunks, places, q, 0);
    return;
  }
  if (threadIdx.x < kLanes) share_tiles<S>(rules, chunk.box, tiles);
  // Shared, where it takes no registers while tiles are coded.
  if (threadIdx.x == 0) shared.out = slots.at + std::uint64_t{chunk.slot} * slots.bytes;
  __syncthreads();
  const std::uint32_t tile = threadIdx.x / kLanes;
  LaneMarks<X> marks;
  if (tile < tiles.count) {
    LaneTileInfo info;
    encode_lanes<X, S>(tiles.rules, in, tiles.places[tile], marks, buffers[tile], info);
    if (X::lane() == 0) shared.infos[tile] = info;
    if (scan.counts != nullptr)
      scan_tile<S>(tiles, info, in, tiles.places[tile], tile_phase<S>(chunk, tile), scan, shared.scans[tile]);
  }
  __syncthreads();
  if (scan.counts != nullptr && threadIdx.x == 0) scan.counts[chunk.slot] = sum_scans(shared.scans, tiles.count);
  LaneChunkPlan plan;
  plan_lane_chunk<X>(shared.infos, tile, tiles.count, plan);
  if (threadIdx.x == 0) sizes[chunk.slot] = plan.bytes;
  const bool coded = plan.bytes < raw_bytes;
  if (places.states != nullptr) {
    if (threadIdx.x < kLanes) {
      std::uint8_t* const place = next_place(chunks, places, q, coded ? plan.bytes : raw_bytes);
      if (threadIdx.x == 0) shared.out = place;
    }
    __syncthreads();
    if (shared.out == nullptr) return;
    if (!coded) copy_values(in, chunk.box, shared.out);
  }
  std::uint8_t* const out = shared.out;
  if (coded && tile < tiles.count)
    place_lanes<X, S>(plan, shared.infos, tile, in, tiles.places[tile], marks, buffers[tile], out);
}

/// What the warps of a decoding CTA share, besides an area for each tile.
struct DecodeShared {
  ChunkTiles tiles;
  LaneHeads heads;
  bool readable;
};
template <class Bits>
using DecodeArea = LaneArea<CodeWord<Bits>>;

/// Decodes each chunk. What is stored may be anything.
template <TileShape S, class Bits>
__global__ void __launch_bounds__(kChunkThreads<Bits>, decoders_per_sm(sizeof(Bits), S))
    decode_chunks(const __grid_constant__ LorenzoChunks chunks, const StoredChunk* all_stored, std::uint32_t* damaged) {
  using X = WarpLanes;
  const ChunkRules& rules = rules_of_cta(chunks);
  if (rules.tile != S) return;
  const CudaChunk& chunk = chunks.at[blockIdx.x];
  const StoredChunk stored = all_stored[blockIdx.x];
  if (chunk.empty() || stored.bytes == 0) {
    if (threadIdx.x == 0) damaged[blockIdx.x] = 0;
    return;
  }
  auto& [tiles, heads, readable] = shared_memory<DecodeShared>();
  auto* const areas = shared_array<DecodeShared, DecodeArea<Bits>>();
  if (threadIdx.x < kLanes) {
    share_tiles<S>(rules, chunk.box, tiles);
    __syncwarp();
    if (threadIdx.x == 0) readable = read_heads(stored.at, stored.bytes, tiles.count, heads);
  }
  __syncthreads();
  bool good = readable;
  const std::uint32_t tile = threadIdx.x / kLanes;
  if (good && tile < tiles.count)
    good =
        decode_lanes<X, S>(tiles.rules, heads.heads[tile], {stored.at + heads.begins[tile], heads.heads[tile].payload},
                           tiles.places[tile], areas[tile], static_cast<Bits*>(chunk.values));
  const int all_good = __syncthreads_and(good);
  if (threadIdx.x == 0) damaged[blockIdx.x] = all_good != 0 ? 0 : 1;
}

/// Launches the kernel of each tile shape that occurs: a CTA for each place, with a warp for each of `tiles` tiles.
/// kernel_of() takes the shape as a constant.
template <class KernelOf, class... Arguments>
cudaError_t launch_shapes(const LorenzoChunks& chunks, std::uint32_t tiles, std::size_t shared_bytes,
                          cudaStream_t stream, KernelOf&& kernel_of, Arguments... arguments) {
  const LaunchShape shape{chunks.items * chunks.chunks, kLanes * tiles, shared_bytes};
  cudaError_t error = cudaSuccess;
  unroll<3>([&](auto s) {
    constexpr auto kShape = static_cast<TileShape>(decltype(s)::value);
    if ((chunks.shapes >> s & 1) == 0 || error != cudaSuccess) return;
    error = launch(kernel_of(std::integral_constant<TileShape, kShape>{}), shape, stream, chunks, arguments...);
  });
  return error;
}

template <class Bits>
cudaError_t launch_encode_width(const LorenzoChunks& chunks, const LorenzoSlots& slots, const LorenzoPlaces& places,
                                const ScanRequest& scan, std::uint32_t* sizes, cudaStream_t stream) {
  return launch_shapes(
      chunks, chunks.tiles, shared_size<EncodeShared, EncodeBuffer<Bits>>(chunks.tiles), stream,
      [](auto shape) { return &encode_chunks<shape.value, Bits>; }, slots, places, scan, sizes);
}

template <class Bits>
cudaError_t launch_decode_width(const LorenzoChunks& chunks, const StoredChunk* stored, std::uint32_t* damaged,
                                cudaStream_t stream) {
  return launch_shapes(
      chunks, chunks.tiles, shared_size<DecodeShared, DecodeArea<Bits>>(chunks.tiles), stream,
      [](auto shape) { return &decode_chunks<shape.value, Bits>; }, stored, damaged);
}

template <class Bits>
cudaError_t launch_sample_width(const LorenzoChunks& chunks, std::uint32_t* costs, std::uint32_t* bytes,
                                cudaStream_t stream) {
  return launch_shapes(
      chunks, 1, sizeof(SampleShared<Bits>), stream, [](auto shape) { return &sample_tiles<shape.value, Bits>; }, costs,
      bytes);
}

}  // namespace quern::kernels
