// Encoding of the finest level of chunks of the stencil codec in levels, a CTA for each and a launch for each step.
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/thread_block.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/stencil/cuda/encode_entry_points.h"
#include "kernels/stencil/warp/level_encode.h"

namespace quern::kernels {
namespace {

/// Chunks are large and few: a CTA has an SM to itself.
constexpr unsigned kEncodeThreads = 512;

/// A template, or nvcc takes what it calls for host code.
template <class X>
__global__ void __launch_bounds__(kEncodeThreads, 1) encode_level_chunks(const EncodeTask* tasks) {
  auto& shared = shared_memory<LevelEncodeShared>();
  const EncodeTask task = tasks[blockIdx.x];
  CtaBlock block;
  encode_level_chunk<X>(block, task, shared);
}

}  // namespace

cudaError_t stencil_levels_encode_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return launch(&encode_level_chunks<WarpLanes>, {count, kEncodeThreads, sizeof(LevelEncodeShared)}, stream, tasks);
}

}  // namespace quern::kernels
