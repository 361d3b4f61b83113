// Restores segments whose masks are coded by levels: a warp a segment, for elements of any width.
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/mask/cuda/job_segment.cuh"
#include "kernels/mask/cuda/launches.cuh"
#include "kernels/mask/levels/constants.h"
#include "kernels/mask/warp/level_decode.h"

namespace quern::kernels {
namespace {

/// CTAs of a warp that a multiprocessor has the shared memory for.
constexpr unsigned kLevelWarpsPerSm = 3;

/// A template, so that nvcc asks what a warp does of device code alone.
template <class X>
__global__ void __launch_bounds__(kLanes, kLevelWarpsPerSm)
    restore_level_masks(const RestoreJob* jobs, std::uint32_t count, unsigned element_bytes,
                        const __grid_constant__ MaskScratch scratch, const __grid_constant__ LevelConstants constants) {
  auto& shared = shared_memory<LaneLevelShared>();
  for (std::uint32_t k = blockIdx.x; k < count; k += gridDim.x) {
    const RestoreJob& job = jobs[k];
    const LaneSegment<std::uint8_t> segment = segment_of_job<std::uint8_t>(job);
    if (segment.elems() == 0 || !is_level_job(job)) continue;
    const LaneLevelMemory memory =
        LaneLevelLayout(segment.elems()).place(scratch.memory + blockIdx.x * scratch.bytes_per_warp);
    const MaskDamage found =
        LaneLevelMask<X>(segment, element_bytes, shared, memory, constants, job.stored, job.bytes).restore();
    if (X::lane() == 0) *job.damage = found;
    X::sync();
  }
}

}  // namespace

cudaError_t launch_restore_level_masks(const RestoreJob* jobs, std::uint32_t count, unsigned element_bytes,
                                       const MaskScratch& scratch, std::uint32_t warps, cudaStream_t stream) {
  return launch(&restore_level_masks<WarpLanes>, {warps, kLanes, sizeof(LaneLevelShared)}, stream, jobs, count,
                element_bytes, scratch, kLevelConstants);
}

}  // namespace quern::kernels
