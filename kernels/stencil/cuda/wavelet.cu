// Chunks of the stencil codec under the wavelet transform: a CTA for each, for all element types.
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/thread_block.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/stencil/cuda/decode_entry_points.h"
#include "kernels/stencil/warp/wavelet_decode.h"

namespace quern::kernels {
namespace {

/// Chunks are large and few: a CTA has an SM to itself.
constexpr unsigned kWaveletThreads = 512;

/// A template, or nvcc takes what it calls for host code.
template <class X>
__global__ void __launch_bounds__(kWaveletThreads, 1)
    decode_wavelet_chunks(const JobTask* tasks, std::uint32_t* damaged) {
  auto& tables = shared_memory<LevelTables>();
  const JobTask task = tasks[blockIdx.x];
  if (reinterpret_cast<const JobHead*>(task.job)->kind != JobKind::wavelet) return;
  CtaBlock block;
  const bool good = decode_wavelet_chunk<X>(block, task, tables);
  if (threadIdx.x == 0) damaged[blockIdx.x] = good ? 0 : 1;
}

}  // namespace

cudaError_t stencil_wavelet_decode_async(const JobTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                                         cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return launch(&decode_wavelet_chunks<WarpLanes>, {count, kWaveletThreads, sizeof(LevelTables)}, stream, tasks,
                damaged);
}

}  // namespace quern::kernels
