// Loads and stores of device memory that other CTAs reach at the same time: never torn, never left out. What a thread
// wrote before store_release is seen by whoever reads that value with load_acquire; the relaxed ones order nothing.
// T is a 32-bit or 64-bit unsigned integer, aligned to its size.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace quern::kernels {

template <class T>
inline constexpr bool kDeviceWord = std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

template <class T>
__device__ __forceinline__ T load_acquire(const T* at) {
  static_assert(kDeviceWord<T>);
#if defined(QUERN_SIMT)
  return ::simt::load_acquire(at);
#else
  T value;
  if constexpr (sizeof(T) == 4) {
    asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  } else {
    asm volatile("ld.acquire.gpu.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  }
  return value;
#endif
}

template <class T>
__device__ __forceinline__ T load_relaxed(const T* at) {
  static_assert(kDeviceWord<T>);
#if defined(QUERN_SIMT)
  return ::simt::load_relaxed(at);
#else
  T value;
  if constexpr (sizeof(T) == 4) {
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  } else {
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(at) : "memory");
  }
  return value;
#endif
}

template <class T>
__device__ __forceinline__ void store_release(T* at, std::type_identity_t<T> value) {
  static_assert(kDeviceWord<T>);
#if defined(QUERN_SIMT)
  ::simt::store_release(at, value);
#else
  if constexpr (sizeof(T) == 4) {
    asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
  } else {
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
  }
#endif
}

template <class T>
__device__ __forceinline__ void store_relaxed(T* at, std::type_identity_t<T> value) {
  static_assert(kDeviceWord<T>);
#if defined(QUERN_SIMT)
  ::simt::store_relaxed(at, value);
#else
  if constexpr (sizeof(T) == 4) {
    asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
  } else {
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
  }
#endif
}

}  // namespace quern::kernels
