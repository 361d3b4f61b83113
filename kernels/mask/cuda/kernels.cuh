// The mask kernels: a warp a segment, and as many CTAs of one warp as there is memory for, which take segments by
// turns. Included by one source file for each element width.
#pragma once

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/mask/cuda/job_segment.cuh"
#include "kernels/mask/cuda/launches.cuh"
#include "kernels/mask/levels/constants.h"
#include "kernels/mask/warp/find.h"
#include "kernels/mask/warp/level_encode.h"

namespace quern::kernels {

/// CTAs that an SM should hold, which bounds the registers; they are handed out to four warps at a time.
inline constexpr unsigned kMaskWarpsPerSm = 8;

/// Rows that a warp scans at a time.
inline constexpr std::uint32_t kScanRows = 64;
inline constexpr unsigned kScanWarps = 8;

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

/// The calling warp's memory for a segment; for masks by levels, too, where they may be estimated.
template <class Word>
__device__ __forceinline__ LaneMaskMemory memory_of_warp(const MaskScratch& scratch, const LaneSegment<Word>& segment,
                                                         bool may_be_levels = false) {
  const LaneMaskLayout layout({segment.extents[0], segment.extents[1], segment.extents[2]}, may_be_levels);
  return layout.place(scratch.memory + blockIdx.x * scratch.bytes_per_warp);
}

/// Says what became of a job.
template <class X, class Word>
__device__ __forceinline__ void tell_job(const MaskJob& job, const LaneSegment<const Word>& segment,
                                         const LaneMaskResult& result, const std::uint8_t* classes) {
  const std::uint32_t chunk[3] = {job.chunk[0], job.chunk[1], job.chunk[2]};
  std::uint64_t whole_chunks = 0;
  if (result.mask.masked != 0) whole_chunks = masked_chunks<X>(segment, classes, chunk);
  if (X::lane() == 0) {
    job.info->masked = result.mask.masked;
    job.info->stored_bytes = result.stored_bytes;
    job.info->masked_chunks = whole_chunks;
  }
  X::sync();
}

template <class Word>
__global__ void __launch_bounds__(kLanes, kMaskWarpsPerSm)
    encode_masks(const __grid_constant__ MaskJobs jobs, const __grid_constant__ MaskScratch scratch) {
  using X = WarpLanes;
  auto& shared = shared_memory<LaneMaskShared>();
  const std::uint32_t count = jobs.there_are();
  for (std::uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    const MaskJob& job = jobs.at[k];
    const LaneSegment<const Word> segment = segment_of_job<const Word>(job);
    if (segment.elems() == 0) continue;
    const LaneMaskMemory memory = memory_of_warp(scratch, segment);
    const std::uint64_t capacity = std::uint64_t{segment.elems()} * sizeof(Word);
    const LaneMaskResult result = mask_lanes<X, Word>(segment, *job.rules, job.scan.counts(), shared, memory,
                                                      job.stored, capacity, static_cast<Word*>(job.copy));
    tell_job<X, Word>(job, segment, result, memory.classes);
  }
}

/// CTAs of a warp that a multiprocessor has the shared memory for.
inline constexpr unsigned kLevelMaskWarpsPerSm = 3;

/// The same for masks by levels.
template <class Word>
__global__ void __launch_bounds__(kLanes, kLevelMaskWarpsPerSm)
    encode_level_masks(const __grid_constant__ MaskJobs jobs, const __grid_constant__ MaskScratch scratch,
                       const __grid_constant__ LevelConstants constants) {
  using X = WarpLanes;
  auto& shared = shared_memory<LaneLevelMaskShared>();
  const std::uint32_t count = jobs.there_are();
  for (std::uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    const MaskJob& job = jobs.at[k];
    const LaneSegment<const Word> segment = segment_of_job<const Word>(job);
    if (segment.elems() == 0) continue;
    const LaneLevelMaskLayout layout({segment.extents[0], segment.extents[1], segment.extents[2]});
    const LaneLevelMaskLayout::Memory memory = layout.place(scratch.memory + blockIdx.x * scratch.bytes_per_warp);
    const std::uint64_t capacity = std::uint64_t{segment.elems()} * sizeof(Word);
    const LaneMaskResult result =
        level_mask_lanes<X, Word>(segment, *job.rules, job.scan.counts(), shared, memory, constants, job.stored,
                                  capacity, static_cast<Word*>(job.copy));
    tell_job<X, Word>(job, segment, result, memory.mask.classes);
  }
}

/// Masks that are coded by levels are left to restore_level_masks.
template <class Word>
__global__ void __launch_bounds__(kLanes, kMaskWarpsPerSm)
    decode_masks(const RestoreJob* jobs, std::uint32_t count, const __grid_constant__ MaskScratch scratch) {
  using X = WarpLanes;
  auto& shared = shared_memory<LaneMaskShared>();
  for (std::uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    const RestoreJob& job = jobs[k];
    const LaneSegment<Word> segment = segment_of_job<Word>(job);
    if (segment.elems() == 0 || is_level_job(job)) continue;
    const LaneMaskMemory memory = memory_of_warp(scratch, segment);
    const MaskDamage found = LaneMaskDecoder<X, Word>(segment, shared, memory, job.stored, job.bytes).restore();
    if (X::lane() == 0) *job.damage = found;
    X::sync();
  }
}

template <class Word>
__global__ void __launch_bounds__(kLanes, kMaskWarpsPerSm)
    clean_boxes(const __grid_constant__ SampleBoxes boxes, const __grid_constant__ MaskScratch scratch) {
  using X = WarpLanes;
  auto& shared = shared_memory<LaneMaskShared>();
  for (std::uint32_t k = blockIdx.x; k < boxes.count; k += gridDim.x) {
    CudaChunk& box = boxes.at[k];
    if (box.empty()) continue;
    LaneSegment<const Word> segment;
    segment.cells = static_cast<const Word*>(box.values);
    for (unsigned a = 0; a < 3; ++a) segment.extents[a] = static_cast<std::uint32_t>(box.box.extents[a]);
    for (unsigned a = 0; a < 2; ++a) segment.strides[a] = box.box.strides[a];
    const auto* const all_rules = reinterpret_cast<const std::uint8_t*>(boxes.rules);
    const auto& rules = *reinterpret_cast<const LaneMaskRules*>(all_rules + k / boxes.each * boxes.rules_stride);
    const ScanCounts counts = scan_lanes<X>(segment, rules, 0, segment.rows()).counts();
    if (!counts.any_mandatory && !may_have_repeated(rules.repeated, counts, segment.elems())) continue;
    const LaneMaskMemory memory = memory_of_warp(scratch, segment, true);
    LaneMaskFinder<X, Word, MaskForms::any> finder(segment, rules, shared, memory);
    find_mask<WordsOfWidth<Word>>(finder, rules.repeated, counts, segment.elems());
    if (finder.mask().masked == 0) continue;
    void* const copy = boxes.room + k * boxes.room_bytes;
    fill_lanes<X>(segment, memory.classes, static_cast<Word*>(copy));
    X::sync();
    if (X::lane() == 0) {
      box.values = copy;
      box.box.strides = {std::uint64_t{segment.extents[1]} * segment.extents[2], segment.extents[2]};
    }
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
cudaError_t launch_encode_masks(const MaskJobs& jobs, const MaskScratch& scratch, std::uint32_t warps,
                                cudaStream_t stream) {
  return launch(&encode_masks<Word>, {warps, kLanes, sizeof(LaneMaskShared)}, stream, jobs, scratch);
}

template <class Word>
cudaError_t launch_encode_level_masks(const MaskJobs& jobs, const MaskScratch& scratch, std::uint32_t warps,
                                      cudaStream_t stream) {
  return launch(&encode_level_masks<Word>, {warps, kLanes, sizeof(LaneLevelMaskShared)}, stream, jobs, scratch,
                kLevelConstants);
}

template <class Word>
cudaError_t launch_decode_masks(const RestoreJob* jobs, std::uint32_t count, const MaskScratch& scratch,
                                std::uint32_t warps, cudaStream_t stream) {
  return launch(&decode_masks<Word>, {warps, kLanes, sizeof(LaneMaskShared)}, stream, jobs, count, scratch);
}

template <class Word>
cudaError_t launch_clean_boxes(const SampleBoxes& boxes, const MaskScratch& scratch, std::uint32_t warps,
                               cudaStream_t stream) {
  return launch(&clean_boxes<Word>, {warps, kLanes, sizeof(LaneMaskShared)}, stream, boxes, scratch);
}

template <class Word>
inline constexpr MaskLaunches kMaskLaunchesOf{&launch_scan_masks<Word>, &launch_encode_masks<Word>,
                                              &launch_encode_level_masks<Word>, &launch_decode_masks<Word>,
                                              &launch_clean_boxes<Word>};

}  // namespace quern::kernels
