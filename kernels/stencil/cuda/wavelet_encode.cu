// Encoding of chunks of the stencil codec under the wavelet, a CTA for each and a launch for each step.
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/thread_block.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/stencil/cuda/encode_entry_points.h"
#include "kernels/stencil/warp/wavelet_encode.h"

namespace quern::kernels {
namespace {

/// Chunks are large and few: a CTA has an SM to itself.
constexpr unsigned kEncodeThreads = 512;

/// A template, or nvcc takes what it calls for host code.
template <class X>
__global__ void __launch_bounds__(kEncodeThreads, 1) encode_wavelet_chunks(const EncodeTask* tasks) {
  auto& shared = shared_memory<WaveletEncodeShared>();
  const EncodeTask task = tasks[blockIdx.x];
  CtaBlock block;
  encode_wavelet_chunk<X>(block, task, shared);
}

}  // namespace

cudaError_t stencil_wavelet_encode_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return launch(&encode_wavelet_chunks<WarpLanes>, {count, kEncodeThreads, sizeof(WaveletEncodeShared)}, stream, tasks);
}

}  // namespace quern::kernels
