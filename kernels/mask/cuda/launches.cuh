// Launches of the mask kernels that the host functions put together; arguments were checked. One table for each width
// of element.
#pragma once

#include "kernels/mask/cuda/entry_points.h"

namespace quern::kernels {

/// The workspace of warps that share jobs.
struct MaskScratch {
  std::uint8_t* memory = nullptr;
  std::uint64_t bytes_per_warp = 0;
};

struct MaskLaunches {
  cudaError_t (*scan)(const LaneMaskRules& rules, const SegmentGrid& grid, const void* in, SegmentScan* scans,
                      cudaStream_t stream);
  cudaError_t (*encode)(const MaskJobs& jobs, const MaskScratch& scratch, std::uint32_t warps, cudaStream_t stream);
  cudaError_t (*encode_levels)(const MaskJobs& jobs, const MaskScratch& scratch, std::uint32_t warps,
                               cudaStream_t stream);
  cudaError_t (*decode)(const RestoreJob* jobs, std::uint32_t count, const MaskScratch& scratch, std::uint32_t warps,
                        cudaStream_t stream);
  cudaError_t (*clean)(const SampleBoxes& boxes, const MaskScratch& scratch, std::uint32_t warps, cudaStream_t stream);
};

/// Restores segments by masks that are coded by levels, of elements of any width.
cudaError_t launch_restore_level_masks(const RestoreJob* jobs, std::uint32_t count, unsigned element_bytes,
                                       const MaskScratch& scratch, std::uint32_t warps, cudaStream_t stream);

extern const MaskLaunches kMaskLaunches8;
extern const MaskLaunches kMaskLaunches16;
extern const MaskLaunches kMaskLaunches32;
extern const MaskLaunches kMaskLaunches64;

inline const MaskLaunches& mask_launches(Element element) {
  switch (element_bytes(element)) {
    case 1: return kMaskLaunches8;
    case 2: return kMaskLaunches16;
    case 4: return kMaskLaunches32;
    default: return kMaskLaunches64;
  }
}

}  // namespace quern::kernels
