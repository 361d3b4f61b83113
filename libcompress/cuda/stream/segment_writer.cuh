// Kernels that put segments together: what is stored of each chunk, where segments and chunks lie, their bytes and
// checksums. The twin of assemble_segment() in libcompress/format and of BatchEncoder::assemble().
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include <quern/device_arrays.h>

#include "libcompress/cuda/stream/stream_tables.h"
#include "libcompress/device/chunk_kernels.h"

namespace quern::cuda {

/// Queue the kernels that turn coded chunks into segments at DeviceStream::bytes: decides what is stored of each chunk
/// (given SegmentRecord::mask and ChunkRecord::all_masked; records of zeros are those of segments without a mask),
/// finds all places, and writes, if the streams' status is ok and everything fits the capacity; DeviceStream::end tells
/// what was needed. `extra` bytes for what follows the segments besides the index count as needed. Several calls, so
/// that a stream's header can be finished in between (the checksums need it), and the codec can join chunks in parts:
/// writing chunks gives those a target.
cudaError_t place_segments_async(const StreamTables& tables, const EncodedSlots& slots, std::uint64_t extra,
                                 cudaStream_t queue);
cudaError_t write_chunks_async(const StreamTables& tables, const EncodedSlots& slots, cudaStream_t queue);
/// Once all chunks are written.
cudaError_t seal_segments_async(const StreamTables& tables, cudaStream_t queue);
/// The same, and what follows the segments: the trailer of each stream, and what became of it.
cudaError_t seal_streams_async(const StreamTables& tables, const DeviceArrays& arrays, DeviceOutcome* outcomes,
                               cudaStream_t queue);

}  // namespace quern::cuda
