// From tiles to chunks: what the tiles of a chunk take together, and their payloads copied to where the chunk is stored,
// a warp for each chunk or part of one.
#pragma once

#include <cuda_runtime.h>

#include "kernels/lorenzo/cuda/chunk_tiles.cuh"
#include "kernels/lorenzo/cuda/staged_chunk.cuh"
#include "kernels/lorenzo/warp/encode.h"
#include "kernels/lorenzo/warp/segment_scan.h"

namespace quern::kernels {

inline constexpr unsigned kJoinWarps = 4;

/// What a warp has in shared memory.
struct JoinWarp {
  LaneTileInfo infos[kMaxTilesPerChunk];
  LaneChunkPlan plan;
};

/// Tiles of a chunk that was encoded in tiles, given its rules; 0 where it was not.
__device__ __forceinline__ std::uint32_t staged_tile_count(const ChunkRules& rules, const CudaChunk& chunk,
                                                           const LorenzoSlots& slots) {
  std::uint32_t count = 0;
  if (lorenzo_has_parts(rules))
    with_shape(rules.tile, [&](auto shape) {
      count = staged_tiles<shape.value>(chunk, slots, staged_tiles_most(rules.element)).count;
    });
  return count;
}

/// A lane takes the record of one tile.
__device__ __forceinline__ TileRecord record_of_lane(const LorenzoSlots& slots, Element element, std::uint64_t place,
                                                     std::uint32_t count) {
  TileRecord record;
  const std::uint32_t lane = WarpLanes::lane();
  if (lane < count) record = slots.parts.records[place * staged_tiles_most(element) + lane];
  return record;
}

/// Plans the chunk that these records make. A template, as is put_heads: nvcc takes the functions of an execution model
/// for host code where a function that is none calls them.
template <class X>
__device__ __forceinline__ void plan_records(const TileRecord& record, std::uint32_t count, JoinWarp& memory) {
  const std::uint32_t lane = WarpLanes::lane();
  if (lane < count) {
    LaneTileInfo info;
    info.head = record.head();
    info.plane_bytes = record.payload;
    memory.infos[lane] = info;
  }
  __syncwarp();
  plan_lane_chunk<X>(memory.infos, count, memory.plan);
  __syncwarp();
}

/// What comes before the payloads of a planned chunk.
template <class X>
__device__ __forceinline__ void put_heads(const JoinWarp& memory, std::uint32_t count, std::uint8_t* target) {
  put_lane_heads<X>(memory.plan, memory.infos, count, target);
}

/// Bytes of one payload on their way to any address, in blocks of 16 that are stored where the target is aligned. The
/// payload begins at a multiple of 16; of the words that hold it none is read that it does not reach.
class PayloadCopy {
 public:
  /// Blocks that each lane reads before it stores one.
  static constexpr unsigned kAtOnce = 2;

  __device__ __forceinline__ PayloadCopy(std::uint8_t* to, const std::uint8_t* from, std::uint32_t bytes)
      : to_(to), from_(from), bytes_(bytes) {
    const auto ahead = static_cast<std::uint32_t>(0 - reinterpret_cast<std::uintptr_t>(to)) & 15;
    first_ = ahead < bytes ? ahead : bytes;
    blocks_ = (bytes - first_) / 16;
  }
  /// Reads what this lane copies of the first blocks and of the bytes around all of them.
  __device__ __forceinline__ void load() {
    const std::uint32_t lane = WarpLanes::lane();
    unroll<kAtOnce>([&](auto k) {
      const std::uint32_t i = lane + kLanes * static_cast<std::uint32_t>(k);
      if (i < blocks_) ahead_[k] = block(i);
    });
    // Half of the lanes have the bytes before the blocks, half those behind.
    const std::uint32_t last = first_ + 16 * blocks_;
    edge_ = lane < 16 ? lane : last + lane - 16;
    has_edge_ = lane < 16 ? lane < first_ : edge_ < bytes_;
    if (has_edge_) byte_ = from_[edge_];
  }
  __device__ __forceinline__ void store() const {
    const std::uint32_t lane = WarpLanes::lane();
    auto* const blocks = reinterpret_cast<LaneQuad*>(to_ + first_);
    unroll<kAtOnce>([&](auto k) {
      const std::uint32_t i = lane + kLanes * static_cast<std::uint32_t>(k);
      if (i < blocks_) blocks[i] = ahead_[k];
    });
    for (std::uint32_t i = lane + kAtOnce * kLanes; i < blocks_; i += kLanes) blocks[i] = block(i);
    if (has_edge_) to_[edge_] = byte_;
  }

 private:
  __device__ __forceinline__ LaneQuad block(std::uint32_t i) const {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(from_) + first_ / 4 + 4 * i;
    const std::uint32_t shift = 8 * (first_ & 3);
    std::uint32_t w[5];
    unroll<4>([&](auto k) { w[k] = words[k]; });
    w[4] = shift != 0 ? words[4] : 0;
    LaneQuad quad;
    unroll<4>([&](auto k) { quad.at[k] = __funnelshift_r(w[k], w[k + 1], shift); });
    return quad;
  }

  std::uint8_t* to_;
  const std::uint8_t* from_;
  std::uint32_t bytes_;
  std::uint32_t first_;  ///< bytes before the blocks
  std::uint32_t blocks_;
  LaneQuad ahead_[kAtOnce];
  std::uint32_t edge_ = 0;
  bool has_edge_ = false;
  std::uint8_t byte_ = 0;
};

}  // namespace quern::kernels
