// Kernels that take segments apart: every size and checksum is checked before a byte of a chunk is looked at. The twin
// of parse_segment() in libcompress/format.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/lane_mask_decode.h"
#include "kernels/cuda/cuda_chunk.h"
#include "libcompress/cuda/device_stream.h"

namespace quern::cuda {

/// Queues the kernel that checks the segments whose SegmentRecord names offset and bytes (which may be anything) and
/// fills the records. `stored[q]` becomes what the codec has to decode for chunk q, which is nothing for chunks that
/// are raw or masked, for places that no chunk has, and in segments that are damaged; SegmentRecord::status says so. In
/// a stream with DeviceStream::stored_only a coded chunk is damage.
cudaError_t read_segments_async(const StreamTables& tables, kernels::StoredChunk* stored, cudaStream_t queue);

/// Queues the kernel that writes raw chunks to their boxes and clears the boxes of masked ones.
cudaError_t copy_plain_chunks_async(const StreamTables& tables, const kernels::CudaChunk* chunks, cudaStream_t queue);

/// Queues the kernel that leaves in the streams' status the first failure of their segments, in order; `damaged[q]` is
/// not 0 where the codec refused chunk q, and `masks` (which may be null) tells of the mask of each segment's place.
cudaError_t join_statuses_async(const StreamTables& tables, const std::uint32_t* damaged,
                                const kernels::MaskDamage* masks, cudaStream_t queue);

}  // namespace quern::cuda
