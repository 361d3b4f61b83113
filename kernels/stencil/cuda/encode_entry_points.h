// Entry points of the stencil kernels that encode. Nothing here allocates or waits; everything is queued on the
// caller's stream. Tasks, and what they point to, lie in device memory, jobs as a host makes them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/encode_task.h"

namespace quern::kernels {

/// Chunks in raster order up to their symbols: codes and symbols stay in the working memory of each, the results say
/// how often each symbol occurs and what could not be done.
cudaError_t stencil_raster_encode_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream);

/// A step each of chunks in levels (kernels/stencil/level_encode_job.h): samples, a class, or symbols of the finest
/// level. What it codes and what it gathers stays in the working memory of each; the results say what could not be
/// done, after the last step how often each symbol occurs.
cudaError_t stencil_levels_encode_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream);

/// A step each of chunks under the wavelet (kernels/stencil/wavelet_encode_job.h). As above.
cudaError_t stencil_wavelet_encode_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream);

/// Codes and symbols of rows to the words of lanes.
cudaError_t stencil_row_lanes_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream);

}  // namespace quern::kernels
