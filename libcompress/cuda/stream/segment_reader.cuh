// Kernels that take segments apart: every size and checksum is checked before a byte of a chunk is looked at. The twin
// of parse_segment() in libcompress/format.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/common/cuda/chunk.h"
#include "kernels/mask/warp/decode.h"
#include "libcompress/cuda/stream/stream_tables.h"

namespace quern::cuda {

/// Queues the kernel that checks the segments whose SegmentRecord names offset and bytes (which may be anything) and
/// fills the records. stored[s] becomes what has to be decoded to the box of the chunk with slot s, which is nothing in
/// segments that are damaged; SegmentRecord::status says so. Slots of streams that have failed, and those that no chunk
/// has, are left alone. In a stream with DeviceStream::stored_only a coded chunk is damage.
cudaError_t read_segments_async(const StreamTables& tables, kernels::StoredChunk* stored, cudaStream_t queue);

}  // namespace quern::cuda
