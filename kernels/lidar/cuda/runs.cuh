// How points and buckets are dealt to warps: in runs of 32, to all warps in turn.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/launch.cuh"
#include "kernels/common/lanes.h"

namespace quern::kernels {

inline constexpr unsigned kRunThreads = 256;

/// The first of this warp's runs, and how far the next is.
__device__ __forceinline__ std::uint64_t own_run() {
  return (std::uint64_t{blockIdx.x} * kRunThreads + threadIdx.x) / kLanes * kLanes;
}
__device__ __forceinline__ std::uint64_t run_stride() { return std::uint64_t{gridDim.x} * kRunThreads; }

inline LaunchShape shape_for_runs(std::uint64_t count, unsigned max_blocks) {
  const std::uint64_t blocks = (count + kRunThreads - 1) / kRunThreads;
  return {static_cast<unsigned>(blocks < max_blocks ? blocks : max_blocks), kRunThreads};
}

}  // namespace quern::kernels
