// Chunks of the interp codec encoded in three launches: some thread blocks for the tiles of a chunk, one for its symbols,
// and when a host has made distributions one for its streams. One kernel of each serves all element types.
#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/thread_block.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/interp/cuda/entry_points.h"
#include "kernels/interp/warp/stream_write.h"
#include "kernels/interp/warp/symbol_encode.h"
#include "kernels/interp/warp/tile_encode.h"

namespace quern::kernels {
namespace {

constexpr unsigned kTileThreads = 8 * kLanes;
constexpr unsigned kTileBlocks = 2;  ///< on a multiprocessor; for more registers would have to be spilled
/// Thread blocks that share the tiles of a chunk: 128 tiles of 16^3 at most.
constexpr unsigned kTileSlices = 16;
constexpr unsigned kSymbolThreads = 12 * kLanes;
/// One warp writes the streams; the others look up what it writes.
constexpr unsigned kWriteThreads = 8 * kLanes;

/// Templates, or nvcc takes what they call for host code.
template <class X>
__global__ void __launch_bounds__(kTileThreads, kTileBlocks) encode_chunk_tiles(const EncodeTask* tasks) {
  CtaBlock block;
  encode_interp_tiles<X>(block, tasks[blockIdx.x / kTileSlices], blockIdx.x % kTileSlices, kTileSlices,
                         shared_memory<InterpTileMemory>());
}

template <class X>
__global__ void __launch_bounds__(kSymbolThreads, 2) encode_chunk_symbols(const EncodeTask* tasks) {
  CtaBlock block;
  encode_interp_symbols<X>(block, tasks[blockIdx.x], shared_memory<InterpSymbolMemory>());
}

template <class X>
__global__ void __launch_bounds__(kWriteThreads, 3) write_chunk_streams(const EncodeTask* tasks) {
  CtaBlock block;
  write_interp_streams<X>(block, tasks[blockIdx.x], shared_memory<InterpWriteMemory>());
}

}  // namespace

cudaError_t interp_encode_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const cudaError_t error = launch(&encode_chunk_tiles<WarpLanes>,
                                   {count * kTileSlices, kTileThreads, sizeof(InterpTileMemory)}, stream, tasks);
  if (error != cudaSuccess) return error;
  return launch(&encode_chunk_symbols<WarpLanes>, {count, kSymbolThreads, sizeof(InterpSymbolMemory)}, stream, tasks);
}

cudaError_t interp_write_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return launch(&write_chunk_streams<WarpLanes>, {count, kWriteThreads, sizeof(InterpWriteMemory)}, stream, tasks);
}

}  // namespace quern::kernels
