// The kernel for what has no job: plain chunks, and tiles with signs, exceptions, or words of 64 bits. A CTA for a
// chunk, a warp for each tile.
#pragma once

#include <cuda_runtime.h>

#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/lorenzo/cuda/chunk_tiles.cuh"
#include "kernels/lorenzo/cuda/decode_room.h"
#include "kernels/lorenzo/cuda/plain_chunks.cuh"
#include "kernels/lorenzo/warp/decode.h"
#include "kernels/lorenzo/warp/heads.h"

namespace quern::kernels {

/// CTAs that an SM should hold, which bounds the registers to what the architecture takes without spilling.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
inline constexpr unsigned kHopperDecoders = 1;
#else
inline constexpr unsigned kHopperDecoders = 0;
#endif
constexpr unsigned decoders_per_sm(std::size_t element_size) {
  return element_size == 8 ? 3 + kHopperDecoders : element_size == 1 ? 1 : 2 + kHopperDecoders;
}

/// The places with something left that a CTA goes through. They are in memory that its threads share: registers are
/// what decoding is short of.
struct PlacesLeft {
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t masks[kMaxTilesPerChunk];  ///< a bit for each place of a round that is still to be done
  std::uint32_t first;                     ///< place of the round that the first thread reads
  std::uint32_t step;                      ///< from a thread's place to the next thread's
  std::uint32_t place;                     ///< the one in turn
};

/// What the warps of a decoding CTA share, besides an area for each tile.
struct DecodeShared {
  PlacesLeft left;
  ChunkTiles tiles;
  LaneHeads heads;
  LaneHeadBytes head_bytes;
  void* values;
  bool readable;
};
template <class Bits>
using DecodeArea = LaneDecodeArea<CodeWord<Bits>>;

/// Asks for a chunk's bytes before the threads of its CTA read them.
__device__ __forceinline__ void prefetch_bytes([[maybe_unused]] const std::uint8_t* at,
                                               [[maybe_unused]] std::uint32_t bytes) {
#if !defined(QUERN_SIMT)
  constexpr std::uint32_t kLine = 128;
  for (std::uint32_t i = kLine * threadIdx.x; i < bytes; i += kLine * blockDim.x)
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at + i));
#endif
}

/// The calling warp's number, anew for each chunk: addresses that depend on it would stay in registers from one chunk to
/// the next.
__device__ __forceinline__ std::uint32_t warp_number() {
  std::uint32_t warp = threadIdx.x / kLanes;
#if !defined(QUERN_SIMT)
  asm volatile("" : "+r"(warp));
#endif
  return warp;
}

/// Decodes the tiles of a chunk that have no job. What is stored may be anything.
template <TileShape S, class Bits>
__device__ __forceinline__ void decode_chunk(const ChunkRules& rules, const CudaChunk& chunk, const StoredChunk& stored,
                                             std::uint32_t warps, std::uint32_t* damaged) {
  using X = WarpLanes;
  auto& [left, tiles, heads, head_bytes, values, readable] = shared_memory<DecodeShared>();
  auto* const areas = shared_array<DecodeShared, DecodeArea<Bits>>();
  prefetch_bytes(stored.at, stored.bytes);
  const std::uint32_t tile = warp_number();
  if (tile == 0) {
    const bool read = read_lane_heads<X, max_chunk_tiles(sizeof(Bits))>(stored.at, stored.bytes,
                                                                        tiles_of_cta<S>(chunk.box), head_bytes, heads);
    if (X::lane() == 0) {
      readable = read;
      values = chunk.values;
      if (!read) damaged[left.place] = 1;
    }
  }
  if (tile == warps - 1) share_tiles<S>(rules, chunk.box, tiles);
  __syncthreads();
  if (!readable || tile >= tiles.count || is_job(heads.heads[tile], S, chunk.box)) return;
  const bool good = decode_lanes<X, S, Bits>(tiles.rules, heads.heads[tile], heads.payloads[tile], tiles.places[tile],
                                             areas[tile], values);
  if (!good && X::lane() == 0) atomicOr(damaged + left.place, 1u);
}

/// The next place of the round, taken out of its mask.
__device__ __forceinline__ std::uint32_t take_place(PlacesLeft& shared, unsigned warps) {
  for (unsigned w = 0; w < warps; ++w) {
    const std::uint32_t mask = shared.masks[w];
    if (mask == 0) continue;
    shared.masks[w] = mask & (mask - 1);
    return shared.first + (kLanes * w + lowest_bit(mask)) * shared.step;
  }
  return PlacesLeft::kNone;
}

/// Calls f() for each of `places` places, below 2^31, with something left that falls to the calling CTA, with its number
/// in shared.place: all of its threads call it, and f by all of them. In a round each thread reads one place. Places
/// are dealt to the CTAs one by one, since those with something left are often neighbours.
template <class F>
__device__ __forceinline__ void for_places_left(const std::uint32_t* left, std::uint32_t places, unsigned warps,
                                                PlacesLeft& shared, F&& f) {
  if (threadIdx.x == 0) {
    shared.first = blockIdx.x;
    shared.step = gridDim.x;
  }
  __syncthreads();
  while (shared.first < places) {
    const std::uint32_t own = shared.first + threadIdx.x * shared.step;
    const std::uint32_t mask = WarpLanes::ballot(own < places && left[own] != 0);
    if (WarpLanes::lane() == 0) shared.masks[threadIdx.x / kLanes] = mask;
    while (true) {
      __syncthreads();
      if (threadIdx.x == 0) shared.place = take_place(shared, warps);
      __syncthreads();
      if (shared.place == PlacesLeft::kNone) break;
      f();
    }
    __syncthreads();
    if (threadIdx.x == 0) shared.first += shared.step * kLanes * warps;
    __syncthreads();
  }
}

/// Decodes what is left of each chunk of the arrays with one tile shape.
template <TileShape S, class Bits>
__global__ void __launch_bounds__(kChunkThreads<Bits>, decoders_per_sm(sizeof(Bits)))
    decode_chunks(const __grid_constant__ LorenzoChunks chunks, const StoredChunk* stored, const std::uint32_t* left,
                  std::uint32_t* damaged) {
  if (chunks.items == 1 && rules_of_item(chunks, 0).tile != S) return;
  PlacesLeft& shared = shared_memory<DecodeShared>().left;
  for_places_left(left, chunks.items * chunks.chunks, chunks.tiles, shared, [&] {
    const std::uint32_t q = shared.place;
    const ChunkRules& rules = rules_of_item(chunks, chunks.items == 1 ? 0 : q / chunks.chunks);
    if (rules.tile != S) return;
    if (stored[q].form == StoredForm::coded) {
      decode_chunk<S, Bits>(rules, chunks.at[q], stored[q], chunks.tiles, damaged);
    } else {
      put_plain_chunk<Bits>(chunks.at[q], stored[q]);
    }
  });
}

}  // namespace quern::kernels
