// Chunks of the stencil codec in raster order: a CTA for each, for all element types.
#include "kernels/core/lane_raster_decode.h"
#include "kernels/cuda/cta_team.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/cuda/stencil_cuda.h"
#include "kernels/cuda/warp_lanes.cuh"

namespace quern::kernels {
namespace {

/// One warp walks the rows, which takes most of the time: several CTAs share an SM.
constexpr unsigned kRasterThreads = 256;

struct RasterShared {
  LevelTables tables;
  std::uint32_t wild[kMostTeamWarps + 1];
};

/// A template, or nvcc takes what it calls for host code.
template <class X>
__global__ void __launch_bounds__(kRasterThreads, 2)
    decode_raster_chunks(const ProgramTask* tasks, std::uint32_t* damaged) {
  auto& shared = shared_memory<RasterShared>();
  const ProgramTask task = tasks[blockIdx.x];
  if (reinterpret_cast<const ProgramHead*>(task.program)->kind != ProgramKind::raster) return;
  CtaTeam team;
  const bool good = decode_raster_chunk<X>(team, task, shared.tables, shared.wild);
  if (threadIdx.x == 0) damaged[blockIdx.x] = good ? 0 : 1;
}

}  // namespace

cudaError_t stencil_raster_decode_async(const ProgramTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                                        cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  return launch(&decode_raster_chunks<WarpLanes>, {count, kRasterThreads, sizeof(RasterShared)}, stream, tasks,
                damaged);
}

}  // namespace quern::kernels
