// Chunks of the interp codec in two launches: a thread block for the codes of a chunk, then some for its tiles. One
// kernel of each serves all element types, as they matter to the last step alone.
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/thread_block.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/interp/cuda/entry_points.h"
#include "kernels/interp/warp/code_decode.h"
#include "kernels/interp/warp/tile_decode.h"

namespace quern::kernels {
namespace {

/// One warp takes codes; the others look up bins in about the time that it needs. A multiprocessor has room for four
/// such chunks.
constexpr unsigned kCodeThreads = 4 * kLanes;
constexpr unsigned kTileThreads = 8 * kLanes;
constexpr unsigned kTileBlocks = 3;  ///< on a multiprocessor; for more registers would have to be spilled
/// Thread blocks that share the tiles of a chunk: 128 tiles of 16^3 at most.
constexpr unsigned kTileSlices = 16;

/// Templates, or nvcc takes what they call for host code.
template <class X>
__global__ void __launch_bounds__(kCodeThreads) decode_chunk_codes(const JobTask* tasks, std::uint32_t* damaged) {
  CtaBlock block;
  const bool good = decode_interp_codes<X>(block, tasks[blockIdx.x], shared_memory<InterpCodeMemory>());
  if (threadIdx.x == 0) damaged[blockIdx.x] = good ? 0 : 1;
}

template <class X>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks)
    decode_chunk_tiles(const JobTask* tasks, const std::uint32_t* damaged) {
  const unsigned chunk = blockIdx.x / kTileSlices;
  if (damaged[chunk] != 0) return;
  CtaBlock block;
  decode_interp_tiles<X>(block, tasks[chunk], blockIdx.x % kTileSlices, kTileSlices, shared_memory<InterpTileMemory>());
}

}  // namespace

cudaError_t interp_decode_async(const JobTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                                cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const cudaError_t error =
      launch(&decode_chunk_codes<WarpLanes>, {count, kCodeThreads, sizeof(InterpCodeMemory)}, stream, tasks, damaged);
  if (error != cudaSuccess) return error;
  return launch(&decode_chunk_tiles<WarpLanes>, {count * kTileSlices, kTileThreads, sizeof(InterpTileMemory)}, stream,
                tasks, damaged);
}

}  // namespace quern::kernels
