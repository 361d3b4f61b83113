// Encoding of chunks of the stencil codec in raster order: a CTA for each, for all element types. Between the two
// launches a host makes distributions from the counts that the first leaves.
#include "kernels/core/lane_rans_encode.h"
#include "kernels/core/lane_raster_encode.h"
#include "kernels/cuda/cta_team.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/cuda/stencil_encode_cuda.h"
#include "kernels/cuda/warp_lanes.cuh"

namespace quern::kernels {
namespace {

/// One warp walks the rows, which takes most of the time: several CTAs share an SM.
constexpr unsigned kEncodeThreads = 256;
/// One warp writes the lanes; the others fill tables before and copy words after.
constexpr unsigned kWriteThreads = 128;

/// Templates, or nvcc takes what they call for host code.
template <class X>
__global__ void __launch_bounds__(kEncodeThreads, 2) encode_raster_chunks(const EncodeTask* tasks) {
  auto& shared = shared_memory<RasterEncodeShared>();
  const EncodeTask task = tasks[blockIdx.x];
  CtaTeam team;
  encode_raster_chunk<X>(team, task, shared);
}

template <class X>
__global__ void __launch_bounds__(kWriteThreads) write_chunk_lanes(const EncodeTask* tasks) {
  auto& shared = shared_memory<LaneEncodeShared>();
  const EncodeTask task = tasks[blockIdx.x];
  CtaTeam team;
  write_row_lanes<X>(team, task, shared);
}

}  // namespace

cudaError_t stencil_raster_encode_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return launch(&encode_raster_chunks<WarpLanes>, {count, kEncodeThreads, sizeof(RasterEncodeShared)}, stream, tasks);
}

cudaError_t stencil_row_lanes_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return launch(&write_chunk_lanes<WarpLanes>, {count, kWriteThreads, sizeof(LaneEncodeShared)}, stream, tasks);
}

}  // namespace quern::kernels
