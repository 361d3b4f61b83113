// Stores to device memory that nothing reads soon.
#pragma once

#include <cuda_runtime.h>

#include <bit>

namespace quern::kernels {

/// Stores a value of 4, 8 or 16 bytes, which leaves the caches first.
template <class T>
__device__ __forceinline__ void store_streaming(T* at, const T& value) {
  if constexpr (sizeof(T) == 16) {
    __stcs(reinterpret_cast<uint4*>(at), std::bit_cast<uint4>(value));
  } else if constexpr (sizeof(T) == 8) {
    __stcs(reinterpret_cast<uint2*>(at), std::bit_cast<uint2>(value));
  } else {
    __stcs(reinterpret_cast<unsigned*>(at), std::bit_cast<unsigned>(value));
  }
}

}  // namespace quern::kernels
