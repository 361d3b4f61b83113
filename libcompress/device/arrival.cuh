// Warps or CTAs of one kernel that work on a stream: which is the last, and goes on with what all of them left.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/common/cuda/warp_lanes.cuh"
#include "libcompress/device/device_stream.h"

namespace quern::cuda {

/// Whether the calling warp is the last of `all` that come here for the stream; the same in all lanes. What the others
/// wrote before they came is then seen.
__device__ __forceinline__ bool is_last_arrival(DeviceStream& stream, std::uint32_t all) {
  using kernels::WarpLanes;
  __syncwarp();
  std::uint32_t before = 0;
  if (WarpLanes::lane() == 0) {
    __threadfence();
    before = atomicAdd(&stream.arrived, 1u);
  }
  if (WarpLanes::broadcast(before, 0) + 1 != all) return false;
  __threadfence();
  if (WarpLanes::lane() == 0) stream.arrived = 0;
  return true;
}

}  // namespace quern::cuda
