// Where the chunks of a queue's segments lie in their windows: what a codec's kernels are told.
#pragma once

#include <cuda_runtime.h>

#include "kernels/common/cuda/chunk.h"
#include "libcompress/cuda/stream/stream_tables.h"

namespace quern::cuda {

/// Queues a kernel that fills `chunks` (tables.count * tables.slots of them, by slot): boxes of the streams' windows,
/// and boxes without extents for slots that no chunk has and for streams that have failed.
cudaError_t lay_out_chunks_async(const StreamTables& tables, kernels::CudaChunk* chunks, cudaStream_t queue);

/// Numbers that kernels count in.
struct ZeroedCounts {
  std::uint32_t* at = nullptr;
  std::uint32_t count = 0;
};

/// The same before chunks are encoded: the records of segments and chunks, and the counts, become 0 as well.
cudaError_t start_encoding_async(const StreamTables& tables, kernels::CudaChunk* chunks, const ZeroedCounts& counts,
                                 cudaStream_t queue);

}  // namespace quern::cuda
