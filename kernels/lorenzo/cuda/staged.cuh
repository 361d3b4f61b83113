// The encoder of staged tiles: warps that stay, each with a tile at a time and the next one on its way to shared
// memory. Warps of a CTA share nothing and wait for none of each other. What they leave is joined by join.cu.
#pragma once

#include <algorithm>

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/lorenzo/cuda/chunk_tiles.cuh"
#include "kernels/lorenzo/cuda/staged_chunk.cuh"
#include "kernels/lorenzo/warp/staged_elements.h"
#include "kernels/lorenzo/warp/staged_encode.h"

namespace quern::kernels {

inline constexpr unsigned kStagedWarps = 4;

/// Tiles of binary32 under an absolute bound.
struct Binary32Tiles {
  using X = WarpLanes;
  using Rules = StagedRules;
  using Word = std::uint32_t;
  /// CTAs that an SM should hold, which bounds the registers: 20 warps of 96.
  static constexpr unsigned kCtas = 5;

  static constexpr std::uint32_t most(Element) { return staged_tiles_most(Element::f32); }
  static constexpr std::uint32_t bytes(Element) { return tile_slot_bytes(Element::f32); }

  template <TileShape S>
  static __device__ __forceinline__ void fetch(Element, const CudaChunk& chunk, std::uint64_t offset, Word* stage) {
    fetch_tile<S>(static_cast<const std::uint32_t*>(chunk.values) + offset, chunk.box, stage);
  }
  template <TileShape S>
  static __device__ __forceinline__ void look(const Rules&, const Word* stage, std::uint32_t phase,
                                              const LaneFills& fills, std::uint32_t& pairs, bool& special) {
    pairs = count_staged_pairs<X, S>(stage, phase);
    special = fills.count != 0 && has_staged_fill<X, ElementWords<Element::f32>>(stage, fills);
  }
  template <TileShape S>
  static __device__ __forceinline__ void read(const Rules& rules, const Word* stage, std::uint32_t*,
                                              StagedTile<X>& tile) {
    read_staged<X, S>(rules, stage, tile);
  }
};

/// Tiles of any element type whose quantizer has no signs.
struct ElementTiles {
  using X = WarpLanes;
  using Rules = ElementRules;
  using Word = std::uint8_t;
  static constexpr unsigned kCtas = 4;

  static constexpr std::uint32_t most(Element element) { return staged_tiles_most(element); }
  static constexpr std::uint32_t bytes(Element element) { return tile_slot_bytes(element); }

  template <TileShape S>
  static __device__ __forceinline__ void fetch(Element element, const CudaChunk& chunk, std::uint64_t offset,
                                               Word* stage) {
    const auto size = static_cast<std::uint32_t>(element_bytes(element));
    fetch_elements<S>(static_cast<const std::uint8_t*>(chunk.values) + size * offset, size, chunk.box, stage);
  }
  template <TileShape S>
  static __device__ __forceinline__ void look(const Rules& rules, const Word* stage, std::uint32_t phase,
                                              const LaneFills& fills, std::uint32_t& pairs, bool& special) {
    scan_elements<X>(rules, stage, phase, fills, pairs, special);
  }
  template <TileShape S>
  static __device__ __forceinline__ void read(const Rules& rules, const Word* stage, std::uint32_t* words,
                                              StagedTile<X>& tile) {
    read_elements<X, S>(rules, stage, words, tile);
  }
};

/// A place that a warp comes to, and what is known there.
struct StagedStep {
  CudaChunk chunk;  ///< comes first, and on its own
  std::uint32_t place;
  std::uint32_t item_end;  ///< of the item that the place belongs to
  std::uint16_t rules;     ///< which of StagedWarp::rules are those of the item
  bool served;             ///< the item has such rules
  bool staged;             ///< there is a tile, and it is on its way
};

/// What a warp has in shared memory: all that outlives a tile, so that it takes no registers. Behind it are the values
/// of a tile.
template <class Rules>
struct alignas(16) StagedWarp {
  std::uint32_t payload[kPayloadWords];
  TileRecord record;
  LaneQuad* slot;       ///< of the tile that is coded
  StagedStep steps[2];  ///< this one and the next, by turns
  Rules rules[2];
  std::uint32_t turn;  ///< which of the steps is this one
};
template <class Tiles>
constexpr std::uint32_t staged_warp_bytes(Element element) {
  return static_cast<std::uint32_t>(sizeof(StagedWarp<typename Tiles::Rules>)) + Tiles::bytes(element);
}

/// Asks for what is known of a chunk.
__device__ __forceinline__ void fetch_chunk(const CudaChunk* from, CudaChunk& to) {
  static_assert(sizeof(CudaChunk) % 8 == 0 && alignof(CudaChunk) == 8);
  const std::uint32_t lane = WarpLanes::lane();
  if (lane < sizeof(CudaChunk) / 8)
    copy_async<8>(reinterpret_cast<std::uint64_t*>(&to) + lane, reinterpret_cast<const std::uint64_t*>(from) + lane);
}

/// A warp's way through the chunks of a call: the same tile of every chunk it comes to.
template <TileShape S, class Tiles>
class StagedWalk {
 public:
  __device__ __forceinline__ StagedWalk(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan)
      : chunks_(chunks), slots_(slots), scan_(scan) {}

  /// Encodes one tile after the other. Before the first step stands one that has no tile.
  __device__ __forceinline__ void run() const {
    const std::uint32_t first = (blockIdx.x * kStagedWarps + threadIdx.x / kLanes) / most();
    if (first >= places()) return;
    Warp& warp = memory();
    fetch_chunk(chunks_.at + first, warp.steps[1].chunk);
    if (X::lane() == 0) {
      warp.steps[0].place = first - stride();
      warp.steps[0].item_end = 0;
      warp.steps[0].rules = 0;
      warp.steps[0].served = false;
      warp.steps[0].staged = false;
      warp.turn = 0;
      warp.record.equal_pairs = 0;  // as they stay where nothing is scanned
      warp.record.special = 0;
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
  using Rules = typename Tiles::Rules;
  using Word = typename Tiles::Word;
  using Warp = StagedWarp<Rules>;

  __device__ __forceinline__ Warp& memory() const {
    return *reinterpret_cast<Warp*>(shared_bytes() + threadIdx.x / kLanes * staged_warp_bytes<Tiles>(chunks_.element));
  }
  __device__ __forceinline__ Word* stage() const { return reinterpret_cast<Word*>(&memory() + 1); }
  __device__ __forceinline__ std::uint32_t most() const { return Tiles::most(chunks_.element); }
  __device__ __forceinline__ std::uint32_t places() const { return chunks_.items * chunks_.chunks; }
  __device__ __forceinline__ std::uint32_t stride() const { return gridDim.x * kStagedWarps / most(); }
  __device__ __forceinline__ std::uint32_t tile() const {
    return (blockIdx.x * kStagedWarps + threadIdx.x / kLanes) % most();
  }

  /// Makes the step after this one, whose chunk is there: asks for its tile, and for the chunk of the step after it.
  __device__ __forceinline__ void go_on() const {
    Warp& warp = memory();
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
        if (served && X::lane() == 0) warp.rules[rules] = Rules::of(own);
      }
      if (served) {
        const StagedGrid grid = staged_tiles<S>(step.chunk, slots_, most());
        staged = tile() < grid.count;
        if (staged)
          Tiles::template fetch<S>(chunks_.element, step.chunk, staged_offset<S>(grid, step.chunk.box, tile()),
                                   stage());
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
    Warp& warp = memory();
    std::uint32_t phase = now.chunk.phase;
    if constexpr (S != TileShape::line)
      phase += tile() & (static_cast<std::uint32_t>(now.chunk.box.extents[2]) / kLanes - 1);
    std::uint32_t pairs = 0;
    bool special = false;
    Tiles::template look<S>(warp.rules[now.rules], stage(), phase, {scan_.fills, scan_.fill_count}, pairs, special);
    if (X::lane() != 0) return;
    warp.record.equal_pairs = static_cast<std::uint8_t>(pairs);
    warp.record.special = special ? 1 : 0;
  }

  /// Encodes the tile of this step, if it has one, and goes on to the next.
  __device__ __forceinline__ void step() const {
    Warp& warp = memory();
    const StagedStep& now = warp.steps[warp.turn];
    StagedTile<X> tile_now;
    if (now.staged) {
      if (scan_.counts != nullptr) look(now);
      // The next step takes the memory of this one's chunk.
      if (X::lane() == 0)
        warp.slot = reinterpret_cast<LaneQuad*>(tile_slots(slots_, now.chunk) + tile() * Tiles::bytes(chunks_.element));
      Tiles::template read<S>(warp.rules[now.rules], stage(), warp.payload, tile_now);
    } else {
      unroll<kRows>([&](auto r) { tile_now.codes.rows[r] = 0; });  // or registers hold what they never held
    }
    __syncwarp();
    go_on();
    __syncwarp();
    if (!now.staged) return;
    const std::uint32_t bytes =
        encode_staged<X, S>(warp.rules[now.rules], Tiles::bytes(chunks_.element), tile_now, warp.payload, warp.record);
    __syncwarp();
    put_payload(bytes);
  }

  /// Writes payload and record where they wait for the rest of the chunk.
  __device__ __forceinline__ void put_payload(std::uint32_t bytes) const {
    const Warp& warp = memory();
    const auto* const from = reinterpret_cast<const LaneQuad*>(warp.payload);
    LaneQuad* const to = warp.slot;
    rolled(0, (bytes + 16 * kLanes - 1) / (16 * kLanes), [&](unsigned k) {
      const std::uint32_t i = kLanes * k + X::lane();
      if (16 * i < bytes) to[i] = from[i];
    });
    if (X::lane() == 0)
      slots_.parts.records[std::uint64_t{warp.steps[warp.turn].place} * most() + tile()] = warp.record;
  }

  const LorenzoChunks& chunks_;
  const LorenzoSlots& slots_;
  const ScanRequest& scan_;
};

/// Encodes the tiles of chunks with one tile shape that are staged; the records say which are to be encoded again.
template <TileShape S, class Tiles>
__global__ void __launch_bounds__(kStagedWarps* kLanes, Tiles::kCtas)
    encode_staged_tiles(const __grid_constant__ LorenzoChunks chunks, const __grid_constant__ LorenzoSlots slots,
                        const __grid_constant__ ScanRequest scan) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *slots.parts.listed = 0;
  StagedWalk<S, Tiles>(chunks, slots, scan).run();
}

/// CTAs of a launch: as many as the device holds at a time, or as many as find a tile. Their warps together take whole
/// chunks.
template <class Tiles>
cudaError_t staged_blocks(const LorenzoChunks& chunks, unsigned& blocks) {
  const unsigned most = Tiles::most(chunks.element);
  const unsigned ctas_of_chunk = most / kStagedWarps;
  int device = 0, processors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const std::uint64_t held = std::uint64_t{Tiles::kCtas} * static_cast<unsigned>(processors) / ctas_of_chunk;
  const std::uint64_t places = std::uint64_t{chunks.items} * chunks.chunks;
  blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(held, 1, places) * ctas_of_chunk);
  return error;
}

/// Launches the kernel of each tile shape that occurs.
template <class Tiles>
cudaError_t launch_staged(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan,
                          cudaStream_t stream) {
  LaunchShape shape{1, kStagedWarps * kLanes, kStagedWarps * staged_warp_bytes<Tiles>(chunks.element)};
  const cudaError_t error = staged_blocks<Tiles>(chunks, shape.blocks);
  if (error != cudaSuccess) return error;
  return launch_shapes(
      chunks, shape, stream, [](auto tile) { return &encode_staged_tiles<tile.value, Tiles>; }, slots, scan);
}

}  // namespace quern::kernels
