// Chunks of the stencil codec in raster order: a CTA for each, for all element types.
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/thread_block.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/stencil/cuda/decode_entry_points.h"
#include "kernels/stencil/warp/raster_decode.h"

namespace quern::kernels {
namespace {

/// One warp walks the rows and keeps in registers what it sees. Chunks are large and few: a CTA has an SM to itself.
constexpr unsigned kRasterThreads = 384;

/// A template, or nvcc takes what it calls for host code.
template <class X>
__global__ void __launch_bounds__(kRasterThreads, 1)
    decode_raster_chunks(const JobTask* tasks, std::uint32_t* damaged) {
  auto& shared = shared_memory<RasterDecodeShared>();
  const JobTask task = tasks[blockIdx.x];
  if (reinterpret_cast<const JobHead*>(task.job)->kind != JobKind::raster) return;
  CtaBlock block;
  const bool good = decode_raster_chunk<X>(block, task, shared);
  if (threadIdx.x == 0) damaged[blockIdx.x] = good ? 0 : 1;
}

}  // namespace

cudaError_t stencil_raster_decode_async(const JobTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                                        cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return launch(&decode_raster_chunks<WarpLanes>, {count, kRasterThreads, sizeof(RasterDecodeShared)}, stream, tasks,
                damaged);
}

}  // namespace quern::kernels
