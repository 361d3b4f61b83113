// The warps of a CTA as a thread block: what kernels/stencil/warp calls those that work on one chunk together.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/common/lanes.h"

namespace quern::kernels {

struct CtaBlock {
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
  /// f() in the first one, g(warp, warps) in the others, counted without it: a CTA of at least two warps.
  template <class F, class G>
  __device__ __forceinline__ void first_and_others(F&& f, G&& g) const {
    if (threadIdx.x < kLanes)
      f();
    else
      g(threadIdx.x / kLanes - 1, blockDim.x / kLanes - 1);
    __syncthreads();
  }
};

}  // namespace quern::kernels
