// The warps of a CTA as a team: what kernels/core calls those that work on one chunk together.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/core/tile.h"

namespace quern::kernels {

struct CtaTeam {
  /// f(warp, warps) in every warp; what it wrote is seen by all of them after.
  template <class F>
  __device__ __forceinline__ void all(F&& f) const {
    f(threadIdx.x / kLanes, blockDim.x / kLanes);
    __syncthreads();
  }
  /// f() in the first one.
  template <class F>
  __device__ __forceinline__ void first(F&& f) const {
    if (threadIdx.x < kLanes) f();
    __syncthreads();
  }
};

}  // namespace quern::kernels
