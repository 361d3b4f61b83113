// The encoder of staged tiles: warps that stay, each with a tile at a time and the next one on its way to shared
// memory. Warps of a CTA share nothing and wait for none of each other. What they leave is joined by join.cu.
#pragma once

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/lorenzo/cuda/chunk_tiles.cuh"
#include "kernels/lorenzo/cuda/staged_chunk.cuh"
#include "kernels/lorenzo/warp/staged_encode.h"

namespace quern::kernels {

inline constexpr unsigned kStagedWarps = 4;
/// CTAs that an SM should hold, which bounds the registers: 20 warps of 96.
inline constexpr unsigned kStagedCtas = 5;

/// A place that a warp comes to, and what is known there.
struct StagedStep {
  CudaChunk chunk;  ///< comes first, and on its own
  std::uint32_t place;
  std::uint32_t item_end;  ///< of the item that the place belongs to
  std::uint16_t rules;     ///< which of StagedWarp::rules are those of the item
  bool served;             ///< the item has such rules
  bool staged;             ///< there is a tile, and it is on its way
};

/// What a warp has in shared memory: all that outlives a tile, so that it takes no registers.
struct alignas(16) StagedWarp {
  std::uint32_t stage[kStageWords];
  std::uint32_t payload[kPayloadWords];
  TileRecord record;
  LaneQuad* slot;       ///< of the tile that is coded
  StagedStep steps[2];  ///< this one and the next, by turns
  StagedRules rules[2];
  std::uint32_t turn;  ///< which of the steps is this one
};

/// Asks for what is known of a chunk.
__device__ __forceinline__ void fetch_chunk(const CudaChunk* from, CudaChunk& to) {
  static_assert(sizeof(CudaChunk) % 8 == 0 && alignof(CudaChunk) == 8);
  const std::uint32_t lane = WarpLanes::lane();
  if (lane < sizeof(CudaChunk) / 8)
    copy_async<8>(reinterpret_cast<std::uint64_t*>(&to) + lane, reinterpret_cast<const std::uint64_t*>(from) + lane);
}

/// A warp's way through the chunks of a call: the same tile of every chunk it comes to.
template <TileShape S>
class StagedWalk {
 public:
  __device__ __forceinline__ StagedWalk(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan)
      : chunks_(chunks), slots_(slots), scan_(scan) {}

  /// Encodes one tile after the other. Before the first step stands one that has no tile.
  __device__ __forceinline__ void run() const {
    const std::uint32_t first = (blockIdx.x * kStagedWarps + threadIdx.x / kLanes) / kStagedTiles;
    if (first >= places()) return;
    StagedWarp& warp = memory();
    fetch_chunk(chunks_.at + first, warp.steps[1].chunk);
    if (X::lane() == 0) {
      warp.steps[0].place = first - stride();
      warp.steps[0].item_end = 0;
      warp.steps[0].rules = 0;
      warp.steps[0].served = false;
      warp.steps[0].staged = false;
      warp.turn = 0;
    }
    std::uint32_t next = 0;
    do {
      wait_for_copies();
      __syncwarp();
      step();
      const std::uint32_t turn = warp.turn ^ 1;
      next = warp.steps[turn].place;
      __syncwarp();
      if (X::lane() == 0) warp.turn = turn;
    } while (next < places());
  }

 private:
  using X = WarpLanes;

  static __device__ __forceinline__ StagedWarp& memory() {
    return reinterpret_cast<StagedWarp*>(shared_bytes())[threadIdx.x / kLanes];
  }
  __device__ __forceinline__ std::uint32_t places() const { return chunks_.items * chunks_.chunks; }
  static __device__ __forceinline__ std::uint32_t stride() { return gridDim.x * kStagedWarps / kStagedTiles; }
  static __device__ __forceinline__ std::uint32_t tile() {
    return (blockIdx.x * kStagedWarps + threadIdx.x / kLanes) % kStagedTiles;
  }

  /// Makes the step after this one, whose chunk is there: asks for its tile, and for the chunk of the step after it.
  __device__ __forceinline__ void go_on() const {
    StagedWarp& warp = memory();
    const StagedStep& now = warp.steps[warp.turn];
    StagedStep& step = warp.steps[warp.turn ^ 1];
    const std::uint32_t place = now.place + stride();
    std::uint32_t item_end = now.item_end;
    std::uint32_t rules = now.rules;
    bool served = now.served;
    bool staged = false;
    if (place < places()) {
      if (place >= item_end) {
        const std::uint32_t item = place / chunks_.chunks;
        item_end = (item + 1) * chunks_.chunks;
        const ChunkRules& own = rules_of_item(chunks_, item);
        served = own.tile == S && lorenzo_has_parts(own);
        rules ^= 1;
        if (served && X::lane() == 0) warp.rules[rules] = StagedRules::of(own);
      }
      if (served) {
        const StagedGrid grid = staged_tiles<S>(step.chunk, slots_);
        staged = tile() < grid.count;
        if (staged)
          fetch_tile<S>(
              static_cast<const std::uint32_t*>(step.chunk.values) + staged_offset<S>(grid, step.chunk.box, tile()),
              step.chunk.box, warp.stage);
      }
      if (place + stride() < places()) fetch_chunk(chunks_.at + place + stride(), warp.steps[warp.turn].chunk);
    }
    if (X::lane() != 0) return;
    step.place = place;
    step.item_end = item_end;
    step.rules = static_cast<std::uint16_t>(rules);
    step.served = served;
    step.staged = staged;
  }

  /// What the tile adds to the scan of its segment.
  __device__ __forceinline__ void look(const StagedStep& now) const {
    StagedWarp& warp = memory();
    std::uint32_t phase = now.chunk.phase;
    if constexpr (S != TileShape::line)
      phase += tile() & (static_cast<std::uint32_t>(now.chunk.box.extents[2]) / kLanes - 1);
    const std::uint32_t pairs = count_staged_pairs<X, S>(warp.stage, phase);
    bool special = false;
    if (scan_.fill_count != 0)
      special = has_staged_fill<X, ElementWords<Element::f32>>(warp.stage, {scan_.fills, scan_.fill_count});
    if (X::lane() != 0) return;
    warp.record.equal_pairs = static_cast<std::uint8_t>(pairs);
    warp.record.special = special ? 1 : 0;
  }

  /// Encodes the tile of this step, if it has one, and goes on to the next.
  __device__ __forceinline__ void step() const {
    StagedWarp& warp = memory();
    const StagedStep& now = warp.steps[warp.turn];
    StagedTile<X> tile_now;
    if (now.staged) {
      if (scan_.counts != nullptr) look(now);
      // The next step takes the memory of this one's chunk.
      if (X::lane() == 0)
        warp.slot = reinterpret_cast<LaneQuad*>(tile_slots(slots_, now.chunk) + tile() * kTileSlotBytes);
      read_staged<X, S>(warp.rules[now.rules], warp.stage, tile_now);
    } else {
      unroll<kRows>([&](auto r) { tile_now.codes.rows[r] = 0; });  // or registers hold what they never held
    }
    __syncwarp();
    go_on();
    __syncwarp();
    if (!now.staged) return;
    const std::uint32_t bytes = encode_staged<X, S>(warp.rules[now.rules], tile_now, warp.payload, warp.record);
    __syncwarp();
    put_payload(bytes);
  }

  /// Writes payload and record where they wait for the rest of the chunk.
  __device__ __forceinline__ void put_payload(std::uint32_t bytes) const {
    const StagedWarp& warp = memory();
    const auto* const from = reinterpret_cast<const LaneQuad*>(warp.payload);
    LaneQuad* const to = warp.slot;
    rolled(0, (bytes + 16 * kLanes - 1) / (16 * kLanes), [&](unsigned k) {
      const std::uint32_t i = kLanes * k + X::lane();
      if (16 * i < bytes) to[i] = from[i];
    });
    if (X::lane() == 0)
      slots_.parts.records[std::uint64_t{warp.steps[warp.turn].place} * kStagedTiles + tile()] = warp.record;
  }

  const LorenzoChunks& chunks_;
  const LorenzoSlots& slots_;
  const ScanRequest& scan_;
};

/// Encodes the tiles of chunks with one tile shape that are staged; the records say which are to be encoded again.
template <TileShape S>
__global__ void __launch_bounds__(kStagedWarps* kLanes, kStagedCtas)
    encode_staged_tiles(const __grid_constant__ LorenzoChunks chunks, const __grid_constant__ LorenzoSlots slots,
                        const __grid_constant__ ScanRequest scan) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *slots.parts.listed = 0;
  StagedWalk<S>(chunks, slots, scan).run();
}

}  // namespace quern::kernels
