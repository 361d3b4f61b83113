// The mask kernels: a warp a segment, and as many CTAs of one warp as there is memory for. They draw segments by turns.
// Included by one source file for each element width.
#pragma once

#include "kernels/core/lane_mask_find.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/mask_launches.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/cuda/warp_lanes.cuh"

namespace quern::kernels {

/// CTAs that an SM should hold, which bounds the registers.
inline constexpr unsigned kMaskWarpsPerSm = 12;

/// Rows that a warp scans at a time.
inline constexpr std::uint32_t kScanRows = 64;
inline constexpr unsigned kScanWarps = 8;

/// The next number that no warp has drawn; the same in all lanes.
__device__ __forceinline__ std::uint32_t draw(std::uint32_t* counter) {
  std::uint32_t drawn = 0;
  if (WarpLanes::lane() == 0) drawn = atomicAdd(counter, 1u);
  return WarpLanes::broadcast(drawn, 0);
}

/// A CTA a segment; its warps take rows by turns.
template <class Word>
__global__ void __launch_bounds__(kScanWarps* kLanes, 4)
    scan_segments(const __grid_constant__ LaneMaskRules rules, const __grid_constant__ SegmentGrid grid, const Word* in,
                  SegmentScan* scans) {
  const LaneSegment<const Word> segment = lane_segment(grid, in, blockIdx.x);
  SegmentScan sum;
  const std::uint32_t rows = segment.rows();
  for (std::uint32_t begin = threadIdx.x / kLanes * kScanRows; begin < rows; begin += kScanWarps * kScanRows) {
    const std::uint32_t end = rows - begin < kScanRows ? rows : begin + kScanRows;
    const SegmentScan scan = scan_lanes<WarpLanes>(segment, rules, begin, end);
    sum.mandatory |= scan.mandatory;
    sum.negative_zeros += scan.negative_zeros;
    sum.equal_pairs += scan.equal_pairs;
  }
  if (WarpLanes::lane() != 0) return;
  SegmentScan& out = scans[blockIdx.x];
  if (sum.mandatory != 0) atomicOr(&out.mandatory, 1u);
  if (sum.negative_zeros != 0) atomicAdd(&out.negative_zeros, sum.negative_zeros);
  if (sum.equal_pairs != 0) atomicAdd(&out.equal_pairs, sum.equal_pairs);
}

template <class Word>
__global__ void __launch_bounds__(kLanes, kMaskWarpsPerSm)
    encode_masks(const __grid_constant__ LaneMaskRules rules, const __grid_constant__ SegmentGrid grid, const Word* in,
                 const __grid_constant__ MaskTurn turn, const __grid_constant__ MaskSlots slots,
                 const __grid_constant__ MaskScratch scratch) {
  using X = WarpLanes;
  auto& shared = shared_memory<LaneMaskShared>();
  const LaneMaskMemory memory = scratch.layout.place(scratch.memory + blockIdx.x * scratch.bytes_per_warp);
  const std::uint32_t listed = *turn.listed;
  for (std::uint32_t k = draw(scratch.counter); k < slots.count; k = draw(scratch.counter)) {
    MaskSlotInfo info;
    if (turn.first + std::uint64_t{k} < listed) {
      info.segment = turn.list[turn.first + k];
      const LaneSegment<const Word> segment = lane_segment(grid, in, info.segment);
      const std::uint64_t capacity = std::uint64_t{segment.elems()} * sizeof(Word);
      auto* const copy = reinterpret_cast<Word*>(static_cast<std::uint8_t*>(slots.copies) + k * turn.slot_bytes);
      const LaneMaskResult result = mask_lanes<X, Word>(segment, rules, turn.scans[info.segment].counts(), shared,
                                                        memory, slots.stored + k * turn.slot_bytes, capacity, copy);
      info.masked = result.mask.masked;
      info.stored_bytes = result.stored_bytes;
      const std::uint32_t chunk[3] = {static_cast<std::uint32_t>(grid.chunk[0]),
                                      static_cast<std::uint32_t>(grid.chunk[1]),
                                      static_cast<std::uint32_t>(grid.chunk[2])};
      if (info.masked != 0) info.masked_chunks = masked_chunks<X>(segment, memory.classes, chunk);
    }
    if (X::lane() == 0) slots.infos[k] = info;
    X::sync();
  }
}

template <class Word>
__global__ void __launch_bounds__(kLanes, kMaskWarpsPerSm)
    decode_masks(const __grid_constant__ SegmentGrid grid, const std::uint8_t* in, std::uint64_t bytes,
                 const StoredMask* masks, std::uint32_t count, Word* out, MaskDamage* damage,
                 const __grid_constant__ MaskScratch scratch) {
  using X = WarpLanes;
  auto& shared = shared_memory<LaneMaskShared>();
  const LaneMaskMemory memory = scratch.layout.place(scratch.memory + blockIdx.x * scratch.bytes_per_warp);
  for (std::uint32_t k = draw(scratch.counter); k < count; k = draw(scratch.counter)) {
    const StoredMask mask = masks[k];
    MaskDamage found = MaskDamage::none;
    if (mask.bytes != 0) {
      found = MaskDamage::corrupt;
      if (mask.segment < grid.segments() && mask.offset <= bytes && mask.bytes <= bytes - mask.offset) {
        const LaneSegment<Word> segment = lane_segment(grid, out, mask.segment);
        found = LaneMaskDecoder<X, Word>(segment, shared, memory, in + mask.offset, mask.bytes).restore();
      }
    }
    if (X::lane() == 0) damage[k] = found;
    X::sync();
  }
}

template <class Word>
cudaError_t launch_scan_masks(const LaneMaskRules& rules, const SegmentGrid& grid, const void* in, SegmentScan* scans,
                              cudaStream_t stream) {
  return launch(&scan_segments<Word>, {static_cast<unsigned>(grid.segments()), kScanWarps * kLanes}, stream, rules,
                grid, static_cast<const Word*>(in), scans);
}

template <class Word>
cudaError_t launch_encode_masks(const LaneMaskRules& rules, const SegmentGrid& grid, const void* in,
                                const MaskTurn& turn, const MaskSlots& slots, const MaskScratch& scratch,
                                std::uint32_t warps, cudaStream_t stream) {
  return launch(&encode_masks<Word>, {warps, kLanes, sizeof(LaneMaskShared)}, stream, rules, grid,
                static_cast<const Word*>(in), turn, slots, scratch);
}

template <class Word>
cudaError_t launch_decode_masks(const SegmentGrid& grid, const std::uint8_t* in, std::uint64_t bytes,
                                const StoredMask* masks, std::uint32_t count, void* out, MaskDamage* damage,
                                const MaskScratch& scratch, std::uint32_t warps, cudaStream_t stream) {
  return launch(&decode_masks<Word>, {warps, kLanes, sizeof(LaneMaskShared)}, stream, grid, in, bytes, masks, count,
                static_cast<Word*>(out), damage, scratch);
}

template <class Word>
inline constexpr MaskLaunches kMaskLaunchesOf{&launch_scan_masks<Word>, &launch_encode_masks<Word>,
                                              &launch_decode_masks<Word>};

}  // namespace quern::kernels
