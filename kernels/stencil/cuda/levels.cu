// Chunks of the stencil codec in levels: a CTA for each. One kernel serves all element types, as they matter to the
// last step alone.
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/thread_block.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/stencil/cuda/decode_entry_points.h"
#include "kernels/stencil/warp/level_decode.h"

namespace quern::kernels {
namespace {

/// Chunks are large and few: a CTA has an SM to itself.
constexpr unsigned kLevelThreads = kMostLevelWarps * kLanes;

/// A template, or nvcc takes what it calls for host code.
template <class X>
__global__ void __launch_bounds__(kLevelThreads) decode_level_chunks(const JobTask* tasks, std::uint32_t* damaged) {
  auto& memory = shared_memory<LevelMemory>();
  const JobTask& task = tasks[blockIdx.x];
  if (reinterpret_cast<const JobHead*>(task.job)->kind != JobKind::levels) return;
  CtaBlock block;
  const bool good = decode_level_chunk<X>(block, task, memory);
  if (threadIdx.x == 0) damaged[blockIdx.x] = good ? 0 : 1;
}

}  // namespace

cudaError_t stencil_levels_decode_async(const JobTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                                        cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return launch(&decode_level_chunks<WarpLanes>, {count, kLevelThreads, sizeof(LevelMemory)}, stream, tasks, damaged);
}

}  // namespace quern::kernels
