// What only nvcc knows, for a compiler of the host. __shared__ is missing on purpose: a CTA's memory is reached through
// simt::shared_bytes().
#pragma once

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __restrict__ __restrict
#define __align__(bytes) __attribute__((aligned(bytes)))
