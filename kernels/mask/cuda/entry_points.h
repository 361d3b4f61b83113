// Entry points of the mask kernels on CUDA: which segments of an array hold special values, their masks, working copies
// without gaps, and the way back. The same masks and bytes as on the CPU. Nothing here allocates or waits; everything
// is queued on the caller's stream, all pointers are device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/common/cuda/chunk.h"
#include "kernels/mask/warp/decode.h"
#include "kernels/mask/warp/level_decode.h"
#include "kernels/mask/warp/level_encode.h"
#include "kernels/mask/warp/scan.h"
#include "kernels/mask/warp/segment_grid.h"

namespace quern::kernels {

/// Whether there are kernels for this: every element type, up to 2^31 - 1 segments of up to 64 chunks and fewer than
/// 2^31 cells.
bool mask_cuda_serves(Element element, const SegmentGrid& grid);

/// Scans every segment: `scans` has one for each.
cudaError_t mask_scan_async(const LaneMaskRules& rules, const SegmentGrid& grid, const void* in, SegmentScan* scans,
                            cudaStream_t stream);

/// Lists the segments whose scan calls for a mask, in rising order, and their number: `list` has room for all segments.
cudaError_t mask_list_async(const LaneMaskRules& rules, const SegmentGrid& grid, const SegmentScan* scans,
                            std::uint32_t* list, std::uint32_t* listed, cudaStream_t stream);

inline constexpr std::uint32_t kNoSegment = 0xffffffffu;

/// What became of a listed segment.
struct MaskSlotInfo {
  std::uint32_t segment = kNoSegment;
  std::uint32_t masked = 0;         ///< cells; 0: no mask, and nothing in the slot
  std::uint64_t stored_bytes = 0;   ///< of the mask; more than the segment's values: it does not pay, no copy was made
  std::uint64_t masked_chunks = 0;  ///< bit k: chunk k, in raster order, has no valid cell
};

/// Bytes of a slot: the values of the largest segment, rounded up so that slots begin aligned.
std::size_t mask_slot_bytes(Element element, const SegmentGrid& grid);

/// Places for as many listed segments as are handled in one call.
struct MaskSlots {
  std::uint32_t count = 0;
  MaskSlotInfo* infos = nullptr;   ///< count of them
  std::uint8_t* stored = nullptr;  ///< count * mask_slot_bytes; stored form of the mask
  void* copies = nullptr;          ///< count * mask_slot_bytes; the segment with its gaps filled, contiguous
};

/// Device memory that `warps` warps need for `jobs` masks of such segments (slots, or stored masks); 256-byte aligned.
/// `by_levels`: masks are made in that form, or stored ones may have it.
cudaError_t mask_workspace(Element element, const SegmentGrid& grid, std::uint32_t warps, std::uint32_t jobs,
                           bool by_levels, std::size_t& bytes);

/// Masks listed segments: slot k takes the (first + k)-th of the list, if there is one, else its info says kNoSegment.
/// The list and the scans are those of mask_list_async. `warps` warps share the slots.
cudaError_t mask_encode_async(const LaneMaskRules& rules, const SegmentGrid& grid, const void* in,
                              const SegmentScan* scans, const std::uint32_t* list, const std::uint32_t* listed,
                              std::uint32_t first, const MaskSlots& slots, std::uint32_t warps, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream);

/// A segment to be masked, wherever it lies.
struct MaskJob {
  const void* values = nullptr;
  std::uint32_t extents[3] = {0, 0, 0};  ///< a 0: nothing to do, and nothing is written
  std::uint32_t chunk[3] = {1, 1, 1};    ///< extents of its chunks
  std::uint64_t strides[2] = {0, 0};
  const LaneMaskRules* rules = nullptr;
  SegmentScan scan;
  std::uint8_t* stored = nullptr;  ///< room for as many bytes as the values take; the stored form
  void* copy = nullptr;            ///< as much room; the segment with its gaps filled, contiguous
  MaskSlotInfo* info = nullptr;    ///< everything but `segment` is filled in
};

/// Jobs in a row, `count` of them at most: as many as a list, whose length lies in device memory, has beyond `first`.
struct MaskJobs {
  const MaskJob* at = nullptr;
  std::uint32_t count = 0;
  const std::uint32_t* listed = nullptr;  ///< null: there are `count` jobs
  std::uint32_t first = 0;

  /// On the device.
  [[gnu::always_inline]] constexpr std::uint32_t there_are() const {
    if (listed == nullptr) return count;
    const std::uint32_t rest = *listed < first ? 0 : *listed - first;
    return rest < count ? rest : count;
  }
};

/// A segment that special values are written back to.
struct RestoreJob {
  void* values = nullptr;
  std::uint32_t extents[3] = {0, 0, 0};  ///< a 0: nothing to do, and nothing is written
  std::uint64_t strides[2] = {0, 0};
  const std::uint8_t* stored = nullptr;
  std::uint64_t bytes = 0;
  MaskDamage* damage = nullptr;
  bool may_be_levels = false;  ///< the stream may have masks that are coded by levels
};

/// Warps that share jobs, and what each needs for segments that are nowhere longer than `largest`.
struct MaskWorkers {
  std::uint32_t warps = 0;
  std::uint64_t bytes_per_warp = 0;
  bool by_levels = false;  ///< the form of masks that they make; the jobs' rules say the same

  MaskWorkers() = default;
  MaskWorkers(const SegmentExtents& largest, std::uint32_t count, bool levels = false);
  /// Those of clean_boxes_async, for masks of any form.
  static MaskWorkers cleaning(const SegmentExtents& largest, std::uint32_t count);
  /// Those that restore; masks that are coded by levels take more memory.
  static MaskWorkers restoring(const SegmentExtents& largest, std::uint32_t count, bool may_be_levels);
  /// Of a workspace that 256 divides the address of.
  std::uint64_t workspace_bytes() const;
};

/// What a warp needs to restore a segment. Host and device code use it alike.
constexpr std::uint64_t restoring_bytes(const SegmentExtents& largest, bool may_be_levels) {
  const std::uint64_t decisions = LaneMaskLayout(largest).bytes();
  const std::uint64_t levels = LaneLevelLayout(largest[0] * largest[1] * largest[2]).bytes();
  return may_be_levels && levels > decisions ? levels : decisions;
}

/// Whether a warp can mask segments of that size.
bool mask_cuda_serves(const SegmentExtents& segment);

/// Masks the segments of jobs of one element type.
cudaError_t mask_jobs_async(Element element, const MaskJobs& jobs, const MaskWorkers& workers, void* workspace,
                            cudaStream_t stream);
/// Restores those of `count` jobs. `may_be_levels`: one of them may have a mask that is coded by levels.
cudaError_t restore_jobs_async(Element element, const RestoreJob* jobs, std::uint32_t count, bool may_be_levels,
                               const MaskWorkers& workers, void* workspace, cudaStream_t stream);

/// Small boxes from all over some arrays, as samples are: `each` of them from every array.
struct SampleBoxes {
  CudaChunk* at = nullptr;  ///< arrays * each places, some of them empty
  std::uint32_t count = 0;  ///< all places
  std::uint32_t each = 1;
  const LaneMaskRules* rules = nullptr;  ///< those of array i lie rules_stride * i bytes from here
  std::size_t rules_stride = 0;
  std::uint8_t* room = nullptr;  ///< room_bytes for each place
  std::uint64_t room_bytes = 0;
};

/// Looks for special values in each box as if it were a segment. A box that has some is replaced by its copy, gaps
/// filled and contiguous, in its room.
cudaError_t clean_boxes_async(Element element, const SampleBoxes& boxes, const MaskWorkers& workers, void* workspace,
                              cudaStream_t stream);

/// The stored mask of a segment.
struct StoredMask {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  ///< 0: no cell is masked
  std::uint32_t segment = 0;
};

/// Writes the special values of segments over the array at `out`. `masks` (count of them) say which and where in the
/// `bytes` bytes at `in` their masks are; any numbers and any bytes may be there. `damage` (count of them) says what
/// was wrong: the segment then has undefined values, and so has an array that two masks of the same segment meet in.
/// `may_be_levels`: as in RestoreJob.
cudaError_t mask_decode_async(Element element, const SegmentGrid& grid, const std::uint8_t* in, std::uint64_t bytes,
                              const StoredMask* masks, std::uint32_t count, bool may_be_levels, void* out,
                              MaskDamage* damage, std::uint32_t warps, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream);

}  // namespace quern::kernels
