// Values of all threads into one, always in the same order: lanes first, as a tree, then warps.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <bit>
#include <cstdint>

#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/common/unroll.h"

namespace quern::kernels {

/// The value of the lane that many further up.
template <class T>
__device__ __forceinline__ T lane_above(const T& value, unsigned distance) {
  static_assert(sizeof(T) % 4 == 0);
  using Words = std::array<std::uint32_t, sizeof(T) / 4>;
  Words words = std::bit_cast<Words>(value);
  unroll<sizeof(T) / 4>([&](auto i) { words[i] = __shfl_down_sync(WarpLanes::kAll, words[i], distance); });
  return std::bit_cast<T>(words);
}

/// merge(a, b) adds b to a. Lane 0 has the result.
template <class T, class Merge>
__device__ __forceinline__ void reduce_warp(T& value, Merge merge) {
  unroll<5>([&](auto step) {
    const T other = lane_above(value, 16u >> decltype(step)::value);
    merge(value, other);
  });
}

/// What a CTA of Threads needs of shared memory to reduce a T.
template <class T, unsigned Threads>
struct ReduceShared {
  static_assert(Threads % 32 == 0 && Threads <= 1024);
  T warps[Threads / 32];
};

/// All threads call it; thread 0 has the result, and the shared memory may be used again.
template <unsigned Threads, class T, class Merge>
__device__ __forceinline__ void reduce_cta(T& value, ReduceShared<T, Threads>& shared, Merge merge) {
  reduce_warp(value, merge);
  if (threadIdx.x % 32 == 0) shared.warps[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) rolled(1, Threads / 32, [&](unsigned warp) { merge(value, shared.warps[warp]); });
  __syncthreads();
}

}  // namespace quern::kernels
