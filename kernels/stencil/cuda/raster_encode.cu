// Encoding of chunks of the stencil codec in raster order: a CTA for each, for all element types. Between the two
// launches a host makes distributions from the counts that the first leaves.
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/thread_block.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/stencil/cuda/encode_entry_points.h"
#include "kernels/stencil/warp/rans_encode.h"
#include "kernels/stencil/warp/raster_encode.h"

namespace quern::kernels {
namespace {

/// One warp walks the rows and keeps in registers what it sees. Chunks are large and few: a CTA has an SM to itself.
constexpr unsigned kEncodeThreads = 384;
/// One warp writes the lanes; the others look up what it writes.
constexpr unsigned kWriteThreads = 256;

/// Templates, or nvcc takes what they call for host code.
template <class X>
__global__ void __launch_bounds__(kEncodeThreads, 1) encode_raster_chunks(const EncodeTask* tasks) {
  auto& shared = shared_memory<RasterEncodeShared>();
  const EncodeTask task = tasks[blockIdx.x];
  CtaBlock block;
  encode_raster_chunk<X>(block, task, shared);
}

template <class X>
__global__ void __launch_bounds__(kWriteThreads, 2) write_chunk_lanes(const EncodeTask* tasks) {
  auto& shared = shared_memory<LaneEncodeShared>();
  const EncodeTask task = tasks[blockIdx.x];
  CtaBlock block;
  write_row_lanes<X>(block, task, shared);
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
