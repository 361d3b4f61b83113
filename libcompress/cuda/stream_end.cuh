// The end of streams: trailers written and read, and what became of each stream.
#pragma once

#include <cuda_runtime.h>

#include <quern/device_arrays.h>

#include "libcompress/cuda/device_stream.h"

namespace quern::cuda {

/// Queues the kernel that writes what follows the sealed segments and their index, and tells of each stream.
cudaError_t write_trailers_async(const StreamTables& tables, const DeviceArrays& arrays, DeviceOutcome* outcomes,
                                 cudaStream_t queue);

/// Given headers that were read, queues the kernel that reads trailers, which may be any bytes, to the segments'
/// records. A stream has to end where its memory does.
cudaError_t read_trailers_async(const StreamTables& tables, cudaStream_t queue);

/// Queues the kernel that tells of each array of `bytes` bytes that was decoded.
cudaError_t tell_outcomes_async(const StreamTables& tables, const DeviceArrays& arrays, std::uint64_t bytes,
                                DeviceOutcome* outcomes, cudaStream_t queue);

}  // namespace quern::cuda
