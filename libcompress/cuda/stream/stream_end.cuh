// The end of streams: trailers read, and what became of each stream.
#pragma once

#include <cuda_runtime.h>

#include <quern/device_arrays.h>

#include "kernels/mask/warp/decode.h"
#include "libcompress/cuda/stream/stream_tables.h"

namespace quern::cuda {

/// Given headers that were read, queues the kernel that reads trailers, which may be any bytes, to the segments'
/// records. A stream has to end where its memory does. One whose layout the tables, or `mask_bytes` for the mask of a
/// segment, have no room for is unsupported: those that encoders choose fit.
cudaError_t read_trailers_async(const StreamTables& tables, std::uint64_t mask_bytes, cudaStream_t queue);

/// Queues the kernel that leaves in the streams' status the first failure of their segments, in order; `damaged[s]` is
/// not 0 where the codec refused the chunk with slot s, and `masks` (which may be null) tells of the mask of each
/// segment's place.
cudaError_t join_statuses_async(const StreamTables& tables, const std::uint32_t* damaged,
                                const kernels::MaskDamage* masks, cudaStream_t queue);

/// Queues the kernel that does the same (`damaged` may be null: there are no segments) and then tells what became of
/// the streams; `bytes` is what a whole array takes.
cudaError_t tell_outcomes_async(const StreamTables& tables, const std::uint32_t* damaged,
                                const kernels::MaskDamage* masks, const DeviceArrays& arrays, std::uint64_t bytes,
                                DeviceOutcome* outcomes, cudaStream_t queue);

}  // namespace quern::cuda
