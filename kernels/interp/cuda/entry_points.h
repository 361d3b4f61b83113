// Entry points of the interp kernels on CUDA. Nothing here allocates or waits; everything is queued on the caller's
// stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/common/encode_task.h"
#include "kernels/common/job_task.h"

namespace quern::kernels {

/// Decodes `count` chunks, each by a job of its own (kernels/interp/interp_job.h), which must be as a host makes it. The
/// tasks, and what they point to, lie in device memory. damaged[i] becomes 1 where the lanes of chunk i do not end where
/// they should, and its elements are then left alone, else 0. Two launches.
cudaError_t interp_decode_async(const JobTask* tasks, std::uint32_t count, std::uint32_t* damaged, cudaStream_t stream);

/// Encode `count` chunks, each by jobs of its own (kernels/interp/interp_encode_job.h), which must be as a host makes
/// them. The tasks, and what they point to, lie in device memory; results are an InterpEncodeResult each, two launches,
/// and an InterpWriteResult each, one launch.
cudaError_t interp_encode_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream);
cudaError_t interp_write_async(const EncodeTask* tasks, std::uint32_t count, cudaStream_t stream);

}  // namespace quern::kernels
