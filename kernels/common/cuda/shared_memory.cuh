// A CTA's shared memory, all of it dynamic: a kernel declares one struct of what its threads share and every launch
// passes its size. So one accessor is all that a build without nvcc must replace (tests/simt).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace quern::kernels {

inline constexpr std::size_t kSharedAlignment = 16;

/// First byte of the CTA's dynamic shared memory.
__device__ __forceinline__ unsigned char* shared_bytes() {
#if defined(QUERN_SIMT)
  return ::simt::shared_bytes();
#else
  extern __shared__ __align__(16) unsigned char quern_shared_bytes[];
  return quern_shared_bytes;
#endif
}

/// The CTA's shared memory as one T. Nothing is initialised.
template <class T>
__device__ __forceinline__ T& shared_memory() {
  static_assert(alignof(T) <= kSharedAlignment);
  return *reinterpret_cast<T*>(shared_bytes());
}

/// Bytes before an array of E that follows a T.
template <class T, class E>
constexpr std::size_t shared_array_offset() {
  return (sizeof(T) + alignof(E) - 1) / alignof(E) * alignof(E);
}
/// What to launch a kernel with whose CTAs share a T and an array of E.
template <class T, class E>
constexpr std::size_t shared_size(std::size_t count) {
  return shared_array_offset<T, E>() + count * sizeof(E);
}

/// The array of E that follows the T; its length is what the launch passed memory for.
template <class T, class E>
__device__ __forceinline__ E* shared_array() {
  static_assert(alignof(E) <= kSharedAlignment);
  return reinterpret_cast<E*>(shared_bytes() + shared_array_offset<T, E>());
}

}  // namespace quern::kernels
