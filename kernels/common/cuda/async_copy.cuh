// Copies from global to shared memory that go on while the thread that asked for them does something else.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace quern::kernels {

/// Asks for 4, 8 or 16 bytes; both addresses are multiples of that number.
template <unsigned Bytes>
__device__ __forceinline__ void copy_async(void* shared, const void* global) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16);
#if defined(QUERN_SIMT)
  std::memcpy(shared, global, Bytes);
#else
  const auto to = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
  if constexpr (Bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(Bytes) : "memory");
  }
#endif
}

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

/// Waits for all that this thread has asked for. Other threads see it after the next barrier that joins them.
__device__ __forceinline__ void wait_for_copies() {
#if !defined(QUERN_SIMT)
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace quern::kernels
