// What a codec offers on CUDA whose chunks a host takes apart: their models are small and read bit by bit, their
// residuals are many. The twin of ChunkDecoder::decode for such chunks.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>

#include "kernels/common/job_task.h"

namespace quern::cuda {

/// What the device is told of one chunk.
struct ChunkJob {
  Vector<std::uint8_t> bytes;
  std::uint64_t work_bytes = 0;  ///< of device memory to work in
};

/// Stateless; may be asked from several threads at once.
class JobKernels {
 public:
  virtual ~JobKernels() = default;
  /// Whether they decode chunks of a codec object with that device_state().
  virtual bool serves(std::span<const std::uint8_t> state) const = 0;
  /// Whether prepare() or decode() look at which elements are special.
  virtual bool reads_special() const { return true; }
  /// The job of the chunk `in`. `box` says extents, strides, and whether elements are special where reads_special(); its
  /// memory is not touched. False when the host has to decode the chunk, for instance because its bytes are damaged.
  /// May throw std::bad_alloc.
  virtual bool prepare(std::span<const std::uint8_t> state, std::span<const std::uint8_t> in, const MutableBox3& box,
                       ChunkJob& job) const = 0;
  /// Queues the decoding of `count` chunks; damaged[i] becomes 0 or 1. Neither allocates nor waits.
  virtual cudaError_t decode(const kernels::JobTask* tasks, std::uint32_t count, std::uint32_t* damaged,
                             cudaStream_t queue) const = 0;
};

}  // namespace quern::cuda
