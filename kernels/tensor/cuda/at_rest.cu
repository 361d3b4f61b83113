// A thread block a tile, a warp a block of 256 values. Where what lies beside the slots begins is found before; what
// will lie there goes to a room of its own for each block first, and is put together by a third kernel.
#include "kernels/tensor/cuda/at_rest_cuda.h"

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/tensor/warp/at_rest_step.h"

namespace quern::kernels {
namespace {

constexpr unsigned kWarps = 8;
constexpr unsigned kThreads = kWarps * kLanes;
constexpr std::uint32_t kRoomWords = kAtRestRawBytes / 4;

/// Headers of a tile before the step.
struct OldHeaders {
  std::uint32_t of[kAtRestTileBlocks];
};

/// What the kernels take, by value.
struct AtRestJob {
  AtRestStep step;
  AtRestRangeOnDevice range;
  std::uint64_t tiles = 0;
  std::uint64_t blocks = 0;
  std::uint64_t* begins = nullptr;  ///< of each tile beside the slots, in words
  std::uint32_t* room = nullptr;
};

__device__ __forceinline__ std::uint32_t* headers_of(const AtRestJob& job, std::uint64_t tile) {
  return job.range.fixed + job.tiles + tile * kAtRestTileBlocks;
}
__device__ __forceinline__ std::uint32_t blocks_of(const AtRestJob& job, std::uint64_t tile) {
  const std::uint64_t left = job.blocks - tile * kAtRestTileBlocks;
  return left < kAtRestTileBlocks ? static_cast<std::uint32_t>(left) : kAtRestTileBlocks;
}

/// Where each tile's words beside the slots begin, by one warp.
template <class X>
__global__ void __launch_bounds__(kLanes) find_begins(const __grid_constant__ AtRestJob job) {
  std::uint64_t before = 0;
  for (std::uint64_t first = 0; first < job.tiles; first += kLanes) {
    const std::uint64_t tile = first + X::lane();
    const std::uint64_t own = tile < job.tiles ? job.range.fixed[tile] / 4 : 0;
    std::uint64_t at = own;
    X::exclusive_scan(at);
    if (tile < job.tiles) job.begins[tile] = before + at;
    before += X::broadcast(at + own, kLanes - 1);
  }
}

template <class X, class Gradient>
__global__ void __launch_bounds__(kThreads)
    step_tiles(const __grid_constant__ AtRestJob job, const __grid_constant__ AtRestArrays<Gradient> arrays) {
  std::uint32_t* const old = shared_memory<OldHeaders>().of;
  for (std::uint64_t tile = blockIdx.x; tile < job.tiles; tile += gridDim.x) {
    std::uint32_t* const headers = headers_of(job, tile);
    const std::uint32_t blocks = blocks_of(job, tile);
    __syncthreads();
    if (threadIdx.x < blocks) old[threadIdx.x] = headers[threadIdx.x];
    __syncthreads();
    for (std::uint32_t b = threadIdx.x / kLanes; b < blocks; b += kWarps) {
      const std::uint64_t in_range = tile * kAtRestTileBlocks + b;
      const std::uint64_t begin = in_range * kAtRestBlock;
      const std::uint64_t left = job.range.values - begin;
      AtRestBlock<Gradient> block;
      block.number = job.range.first_block + in_range;
      block.values = left < kAtRestBlock ? static_cast<unsigned>(left) : kAtRestBlock;
      block.header = headers + b;
      block.slot = job.range.fixed + job.tiles + job.blocks + in_range * (at_rest_slot_bytes(job.step.form) / 4);
      block.room = job.room + in_range * kRoomWords;
      if (unpack_at_rest_header(old[b]).kind != AtRestKind::narrow)
        block.beside = job.range.beside + job.begins[tile] + at_rest_beside_before<X>(old, blocks, b);
      block.gradient = arrays.gradient + begin;
      block.weight = arrays.weight + begin;
      block.copy = arrays.copy == nullptr ? nullptr : arrays.copy + begin;
      AtRestOnLanes<X>::template step<Gradient>(job.step, block, old[b]);
    }
    __syncthreads();
    if (threadIdx.x < kLanes) {
      const std::uint32_t words = at_rest_beside_before<X>(headers, blocks, blocks);
      if (threadIdx.x == 0) job.range.fixed[tile] = 4 * words;
    }
  }
}

/// Puts together what lies beside the slots.
template <class X>
__global__ void __launch_bounds__(kThreads) gather_beside(const __grid_constant__ AtRestJob job) {
  for (std::uint64_t tile = blockIdx.x; tile < job.tiles; tile += gridDim.x) {
    if (job.range.fixed[tile] == 0) continue;
    const std::uint32_t* const headers = headers_of(job, tile);
    const std::uint32_t blocks = blocks_of(job, tile);
    for (std::uint32_t b = threadIdx.x / kLanes; b < blocks; b += kWarps) {
      const auto words = static_cast<std::uint32_t>(at_rest_beside_bytes(unpack_at_rest_header(headers[b]).kind) / 4);
      if (words == 0) continue;
      const std::uint64_t to = job.begins[tile] + at_rest_beside_before<X>(headers, blocks, b);
      const std::uint32_t* const from = job.room + (tile * kAtRestTileBlocks + b) * kRoomWords;
      for (std::uint32_t w = X::lane(); w < words && to + w < job.range.beside_words; w += kLanes)
        job.range.new_beside[to + w] = from[w];
    }
  }
}

bool aligned(const void* at, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(at) % bytes == 0; }

template <class Gradient>
cudaError_t run(const AtRestStep& step, const AtRestRangeOnDevice& range, const AtRestArrays<Gradient>& arrays,
                void* scratch, cudaStream_t stream, unsigned max_blocks) {
  if (range.values == 0) return cudaSuccess;
  if (range.fixed == nullptr || arrays.gradient == nullptr || arrays.weight == nullptr || scratch == nullptr ||
      max_blocks == 0 || (step.form.bits != 8 && step.form.bits != 4) || range.values > UINT64_C(1) << 38 ||
      (range.beside_words != 0 && range.new_beside == nullptr) || !aligned(range.fixed, 4) || !aligned(scratch, 8) ||
      !aligned(arrays.gradient, 4 * sizeof(Gradient)) || !aligned(arrays.weight, 16) || !aligned(arrays.copy, 8))
    return cudaErrorInvalidValue;
  AtRestJob job;
  job.step = step;
  job.range = range;
  job.tiles = (range.values + kAtRestTile - 1) / kAtRestTile;
  job.blocks = (range.values + kAtRestBlock - 1) / kAtRestBlock;
  job.begins = static_cast<std::uint64_t*>(scratch);
  job.room = reinterpret_cast<std::uint32_t*>(job.begins + job.tiles);
  const LaunchShape shape{static_cast<unsigned>(job.tiles < max_blocks ? job.tiles : max_blocks), kThreads};
  LaunchShape with_headers = shape;
  with_headers.shared_bytes = sizeof(OldHeaders);
  cudaError_t error = launch(&find_begins<WarpLanes>, {1, kLanes}, stream, job);
  if (error == cudaSuccess) error = launch(&step_tiles<WarpLanes, Gradient>, with_headers, stream, job, arrays);
  if (error == cudaSuccess) error = launch(&find_begins<WarpLanes>, {1, kLanes}, stream, job);
  if (error == cudaSuccess) error = launch(&gather_beside<WarpLanes>, shape, stream, job);
  return error;
}

}  // namespace

std::uint64_t at_rest_scratch_bytes(std::uint64_t values) {
  return (values + kAtRestTile - 1) / kAtRestTile * 8 + (values + kAtRestBlock - 1) / kAtRestBlock * kAtRestRawBytes;
}

cudaError_t at_rest_step_async(const AtRestStep& step, const AtRestRangeOnDevice& range,
                               const AtRestArrays<float>& arrays, void* scratch, cudaStream_t stream,
                               unsigned max_blocks) {
  return run(step, range, arrays, scratch, stream, max_blocks);
}

cudaError_t at_rest_step_async(const AtRestStep& step, const AtRestRangeOnDevice& range,
                               const AtRestArrays<std::uint16_t>& arrays, void* scratch, cudaStream_t stream,
                               unsigned max_blocks) {
  return run(step, range, arrays, scratch, stream, max_blocks);
}

}  // namespace quern::kernels
