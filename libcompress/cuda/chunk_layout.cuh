// Where the chunks of a queue's segments lie in their windows: what a codec's kernels are told.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/cuda_chunk.h"
#include "libcompress/cuda/device_stream.h"

namespace quern::cuda {

/// Queues a kernel that fills `chunks` (tables.count * tables.segments * tables.chunks of them): boxes of the streams'
/// windows, and boxes without extents for places that no chunk has and for streams that have failed.
cudaError_t lay_out_chunks_async(const StreamTables& tables, kernels::CudaChunk* chunks, cudaStream_t queue);

}  // namespace quern::cuda
