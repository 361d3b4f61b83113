// Where the chunks of a queue's segments lie in their windows: what a codec's kernels are told.
#pragma once

#include <cuda_runtime.h>

#include "kernels/common/cuda/chunk.h"
#include "libcompress/cuda/stream/stream_tables.h"

namespace quern::cuda {

/// Numbers that kernels count in.
struct ZeroedCounts {
  std::uint32_t* at = nullptr;
  std::uint32_t count = 0;
};

/// Before chunks are encoded: queues a kernel that fills `chunks` (tables.count * tables.slots of them, by slot) with
/// boxes of the streams' windows, and with boxes without extents for slots that no chunk has and for streams that have
/// failed. The records of segments and chunks, and the counts, become 0.
cudaError_t start_encoding_async(const StreamTables& tables, kernels::CudaChunk* chunks, const ZeroedCounts& counts,
                                 cudaStream_t queue);

}  // namespace quern::cuda
