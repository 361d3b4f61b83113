// Sizes of chunks that were encoded in tiles, and their tiles joined.
#include "kernels/lorenzo/cuda/join.cuh"

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/lorenzo/cuda/staged_launches.cuh"

namespace quern::kernels {
namespace {

__device__ __forceinline__ JoinWarp& memory_of_warp() {
  return reinterpret_cast<JoinWarp*>(shared_bytes())[threadIdx.x / kLanes];
}

/// What the tiles of a chunk add to the scan of its segment, whatever they hold; called by a warp.
template <TileShape S, class Bits>
__device__ __forceinline__ LaneScan scan_chunk(Element element, const CudaChunk& chunk, const ScanRequest& scan) {
  using X = WarpLanes;
  const auto counts = tile_counts(chunk.box, S);
  const auto tiles = static_cast<std::uint32_t>(counts[0] * counts[1] * counts[2]);
  LaneScan found;
  rolled(0, tiles, [&](unsigned t) {
    const LanePlace place = lane_place<S>(chunk.box, t);
    const auto* const tile = static_cast<const Bits*>(chunk.values) + place.offset;
    scan_pairs<X, S>(tile, place, tile_phase<S>(chunk, t), found);
    if (is_float(element) || scan.fill_count != 0)
      scan_values<X, S>(element, tile, place, {scan.fills, scan.fill_count}, found);
  });
  return found;
}

/// CTAs that an SM should hold: told of no number, the compiler spills to hold more.
constexpr unsigned kSizeCtas = 10;

/// A warp for each chunk: what its tiles take together, and what they saw of the scan. Chunks that were not encoded in
/// tiles are scanned here, and come to the list.
template <class Bits>
__global__ void __launch_bounds__(kJoinWarps* kLanes, kSizeCtas)
    size_chunks(const __grid_constant__ LorenzoChunks chunks, const __grid_constant__ LorenzoSlots slots,
                const __grid_constant__ ScanRequest scan, std::uint32_t* sizes) {
  using X = WarpLanes;
  const std::uint32_t place = blockIdx.x * kJoinWarps + threadIdx.x / kLanes;
  if (place >= chunks.items * chunks.chunks) return;
  const CudaChunk& chunk = chunks.at[place];
  if (chunk.empty()) return;
  const ChunkRules& rules = rules_of_item(chunks, place / chunks.chunks);
  const std::uint32_t count = staged_tile_count(rules, chunk, slots);
  const TileRecord record = record_of_lane(slots, chunks.element, place, count);
  if (X::lane() == 0) slots.parts.targets[chunk.slot] = nullptr;
  if (count == 0 || X::any((record.refused | record.special) != 0)) {
    if (X::lane() == 0) slots.parts.list[atomicAdd(slots.parts.listed, 1u)] = place;
    if (scan.counts == nullptr) return;
    with_shape(rules.tile, [&](auto shape) {
      const LaneScan found = scan_chunk<shape.value, Bits>(chunks.element, chunk, scan);
      if (X::lane() == 0)
        scan.counts[chunk.slot] = {found.equal_pairs, found.negative_zeros, found.any_mandatory ? 1u : 0u};
    });
    return;
  }
  JoinWarp& memory = memory_of_warp();
  plan_records<X>(record, count, memory);
  const std::uint32_t pairs = X::reduce_add(record.equal_pairs);
  if (X::lane() != 0) return;
  const std::uint32_t bytes = memory.plan.bytes;
  sizes[chunk.slot] = bytes < count * tile_slot_bytes(chunks.element) ? bytes | kChunkInParts : bytes;
  if (scan.counts != nullptr) scan.counts[chunk.slot] = {pairs, 0, 0};
}

/// A warp for `each` tiles of a chunk, a number that divides the most it may have: their payloads to the chunk's target,
/// and by the first of them what comes before payloads.
__global__ void __launch_bounds__(kJoinWarps* kLanes)
    join_tiles(const __grid_constant__ LorenzoChunks chunks, const __grid_constant__ LorenzoSlots slots,
               std::uint32_t each) {
  const std::uint32_t warp = blockIdx.x * kJoinWarps + threadIdx.x / kLanes;
  const std::uint32_t parts = staged_tiles_most(chunks.element) / each;
  const std::uint32_t place = warp / parts;
  if (place >= chunks.items * chunks.chunks) return;
  const CudaChunk& chunk = chunks.at[place];
  if (chunk.empty()) return;
  std::uint8_t* const target = slots.parts.targets[chunk.slot];
  const std::uint32_t begin = warp % parts * each;
  const std::uint32_t count = staged_tile_count(rules_of_item(chunks, place / chunks.chunks), chunk, slots);
  if (target == nullptr || begin >= count) return;
  JoinWarp& memory = memory_of_warp();
  plan_records<WarpLanes>(record_of_lane(slots, chunks.element, place, count), count, memory);
  if (begin == 0) put_heads<WarpLanes>(memory, count, target);
  if (memory.plan.constant) return;
  const std::uint32_t end = begin + each < count ? begin + each : count;
  const std::uint8_t* const payloads = tile_slots(slots, chunk);
  const std::uint32_t slot_bytes = tile_slot_bytes(chunks.element);
  // Two at a time, so that bytes of both are on their way together.
  for (std::uint32_t t = begin; t < end; t += 2) {
    const std::uint32_t next = t + 1 < end ? t + 1 : t;
    PayloadCopy first(target + memory.plan.payloads[t], payloads + t * slot_bytes, memory.infos[t].plane_bytes);
    PayloadCopy second(target + memory.plan.payloads[next], payloads + next * slot_bytes,
                       next == t ? 0 : memory.infos[next].plane_bytes);
    first.load();
    second.load();
    first.store();
    second.store();
  }
}

constexpr std::uint64_t aligned16(std::uint64_t bytes) { return (bytes + 15) / 16 * 16; }

unsigned blocks_for(std::uint64_t warps) { return static_cast<unsigned>((warps + kJoinWarps - 1) / kJoinWarps); }

}  // namespace

std::uint64_t lorenzo_parts_bytes(Element element, std::uint64_t places) {
  return places * staged_tiles_most(element) * sizeof(TileRecord) + aligned16((1 + places) * sizeof(std::uint32_t));
}

LorenzoParts lorenzo_parts(std::uint8_t* memory, Element element, std::uint64_t places) {
  LorenzoParts parts;
  parts.records = reinterpret_cast<TileRecord*>(memory);
  parts.listed = reinterpret_cast<std::uint32_t*>(parts.records + places * staged_tiles_most(element));
  parts.list = parts.listed + 1;
  return parts;
}

cudaError_t size_chunks_async(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan,
                              std::uint32_t* sizes, cudaStream_t stream) {
  const std::uint64_t places = std::uint64_t{chunks.items} * chunks.chunks;
  const LaunchShape shape{blocks_for(places), kJoinWarps * kLanes, kJoinWarps * sizeof(JoinWarp)};
  switch (element_bytes(chunks.element)) {
    case 1: return launch(&size_chunks<std::uint8_t>, shape, stream, chunks, slots, scan, sizes);
    case 2: return launch(&size_chunks<std::uint16_t>, shape, stream, chunks, slots, scan, sizes);
    case 4: return launch(&size_chunks<std::uint32_t>, shape, stream, chunks, slots, scan, sizes);
    default: return launch(&size_chunks<std::uint64_t>, shape, stream, chunks, slots, scan, sizes);
  }
}

cudaError_t lorenzo_join_async(const LorenzoChunks& chunks, const LorenzoSlots& slots, cudaStream_t stream) {
  const std::uint64_t places = std::uint64_t{chunks.items} * chunks.chunks;
  if (slots.parts.records == nullptr || places == 0) return cudaSuccess;
  // Few chunks: more warps.
  constexpr std::uint64_t kManyChunks = 4096;
  const std::uint32_t most = staged_tiles_most(chunks.element);
  const std::uint32_t each = places >= kManyChunks ? most : most / 2;
  return launch(&join_tiles, {blocks_for(places * (most / each)), kJoinWarps * kLanes, kJoinWarps * sizeof(JoinWarp)},
                stream, chunks, slots, each);
}

}  // namespace quern::kernels
