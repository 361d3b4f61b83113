// Entry points of the stencil kernels on CUDA. Nothing here allocates or waits; everything is queued on the caller's
// stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/job_task.h"

namespace quern::kernels {

/// Of `count` chunks decodes those in levels, each by a program of its own (kernels/stencil/level_job.h), which must be
/// as a host makes it. The tasks, and what they point to, lie in device memory. damaged[i] becomes 1 where the lanes of
/// chunk i do not end where they should, and its elements are then undefined, else 0. Chunks of other kinds are left
/// alone.
cudaError_t stencil_levels_decode_async(const ProgramTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                                        cudaStream_t stream);

/// The same of those in raster order (kernels/stencil/raster_job.h); damaged[i] becomes 1, too, where sums are so large
/// that a host has to decode the chunk.
cudaError_t stencil_raster_decode_async(const ProgramTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                                        cudaStream_t stream);

/// The same of those under the wavelet transform (kernels/stencil/wavelet_job.h).
cudaError_t stencil_wavelet_decode_async(const ProgramTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                                         cudaStream_t stream);

}  // namespace quern::kernels
