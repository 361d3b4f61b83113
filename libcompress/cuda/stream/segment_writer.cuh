// Kernels that put segments together: what is stored of each chunk, where segments and chunks lie, their bytes and
// checksums. The twin of assemble_segment() in libcompress/format and of BatchEncoder::assemble().
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "libcompress/cuda/stream/stream_tables.h"

namespace quern::cuda {

/// Where a codec left the chunks: slot s holds `coded[s]` bytes.
struct ChunkSlots {
  const std::uint8_t* slots = nullptr;
  std::uint64_t slot_bytes = 0;
  const std::uint32_t* coded = nullptr;
};

/// Queues the kernels that turn coded chunks into segments at DeviceStream::bytes: decides what is stored of each chunk
/// (given SegmentRecord::mask and ChunkRecord::all_masked; records of zeros are those of segments without a mask),
/// finds all places, and writes, if the streams' status is ok and everything fits the capacity; DeviceStream::end tells
/// what was needed. `extra` bytes for what follows the segments besides the index count as needed. Two calls, so that a
/// stream's header can be finished in between: the checksums need it.
cudaError_t place_segments_async(const StreamTables& tables, const ChunkSlots& slots, std::uint64_t extra,
                                 cudaStream_t queue);
cudaError_t write_segments_async(const StreamTables& tables, const ChunkSlots& slots, cudaStream_t queue);

}  // namespace quern::cuda
