// Arrays held against what a second reading of their streams decoded: has a hardware fault changed something?
#pragma once

#include <cuda_runtime.h>

#include "libcompress/device/chunk_kernels.h"

namespace quern::codec::lorenzo {

/// Queues the kernel behind ChunkKernels::find_faults.
cudaError_t find_faults_async(const cuda::FaultPlaces& places, cudaStream_t queue);

}  // namespace quern::codec::lorenzo
