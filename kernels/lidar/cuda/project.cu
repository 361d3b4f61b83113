// Points projected onto rays: a thread a point, and two launches for each cloud.
#include "kernels/lidar/cuda/project_cuda.h"

#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/lidar/cuda/runs.cuh"

namespace quern::kernels {
namespace {

template <class X, ProjectionStep Step>
__global__ void __launch_bounds__(kRunThreads)
    project_cloud(const __grid_constant__ ProjectedCloud cloud, const __grid_constant__ RayView rays, RayHit* hits) {
  for (std::uint64_t i = own_run(); i < cloud.count; i += run_stride()) project_points<X, Step>(cloud, rays, i, hits);
}

template <ProjectionStep Step>
cudaError_t run_step(std::span<const ProjectedCloud> clouds, const RayView& rays, RayHit* hits, cudaStream_t stream,
                     unsigned max_blocks) {
  for (const ProjectedCloud& cloud : clouds) {
    if (cloud.count == 0) continue;
    const cudaError_t error =
        launch(&project_cloud<WarpLanes, Step>, shape_for_runs(cloud.count, max_blocks), stream, cloud, rays, hits);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t project_async(std::span<const ProjectedCloud> clouds, const RayView& rays, RayHit* hits,
                          cudaStream_t stream, unsigned max_blocks) {
  if (rays.ring_count == 0 || rays.steps.size == 0 || max_blocks == 0) return cudaErrorInvalidValue;
  static_assert(RayHit::kNone == UINT64_MAX);
  cudaError_t error = cudaMemsetAsync(hits, 0xff, rays.slots() * sizeof(RayHit), stream);
  if (error != cudaSuccess) return error;
  error = run_step<ProjectionStep::first_keys>(clouds, rays, hits, stream, max_blocks);
  if (error != cudaSuccess) return error;
  return run_step<ProjectionStep::second_keys>(clouds, rays, hits, stream, max_blocks);
}

}  // namespace quern::kernels
