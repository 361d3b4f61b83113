// Points of a map projected onto the rays of a sensor, all in device memory: what lidar/predict does on the host.
// Nothing here allocates or waits; everything is queued on the caller's stream.
#pragma once

#include <cuda_runtime_api.h>

#include <span>

#include "kernels/lidar/cuda/both_ways_cuda.h"
#include "kernels/lidar/ray_hits.h"
#include "kernels/lidar/warp/project.h"

namespace quern::kernels {

/// Projects clouds, each moved, onto rays. Points lie in device memory, and so do what `rays` points to and `hits`,
/// which gets the best points of rays.slots() slots. The order of clouds and points does not matter, nor does `max_blocks`,
/// which is at least 1. cudaErrorInvalidValue where there are no rays.
cudaError_t project_async(std::span<const ProjectedCloud> clouds, const RayView& rays, RayHit* hits,
                          cudaStream_t stream, unsigned max_blocks = kMostGridBlocks);

}  // namespace quern::kernels
