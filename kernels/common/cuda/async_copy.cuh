// Copies from device memory to shared memory that the threads do not wait for. On the simulator they are done at once.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace quern::kernels {

/// Copies `bytes` bytes, 1 to 16, and writes zeros up to 16; both addresses are multiples of 16.
__device__ __forceinline__ void copy_async(void* shared, const void* from, std::uint32_t bytes) {
#if defined(QUERN_SIMT)
  std::memset(static_cast<std::uint8_t*>(shared) + bytes, 0, 16 - bytes);
  std::memcpy(shared, from, bytes);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(from), "r"(bytes)
               : "memory");
#endif
}
__device__ __forceinline__ void copy_async(void* shared, const void* from) {
#if defined(QUERN_SIMT)
  std::memcpy(shared, from, 16);
#else
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))),
      "l"(from)
      : "memory");
#endif
}

/// Waits for all copies that the calling thread has asked for. Other threads see them after a barrier.
__device__ __forceinline__ void wait_for_copies() {
#if !defined(QUERN_SIMT)
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace quern::kernels
