// Execution model for CUDA: a vector of 32 lanes is one register in each thread of a warp. All 32 threads call every
// operation together; what an operation returns by value is the same in all of them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/core/tile.h"
#include "kernels/core/unroll.h"

namespace quern::kernels {

struct WarpLanes {
  static constexpr unsigned kAll = 0xffffffffu;

  template <class T>
  using vec = T;

  /// nvcc keeps the special register out of the way; computed from threadIdx it costs registers, and spills on sm_120.
  static __device__ __forceinline__ unsigned lane() {
#if defined(QUERN_SIMT)
    return ::simt::lane_id();
#else
    unsigned id;
    asm("mov.u32 %0, %%laneid;" : "=r"(id));
    return id;
#endif
  }

  template <class F>
  static __device__ __forceinline__ void lanes(F&& f) {
    f(lane());
  }
  template <class T>
  static __device__ __forceinline__ T get(const T& a, std::size_t) {
    return a;
  }
  template <class T>
  static __device__ __forceinline__ void set(T& a, std::size_t, T value) {
    a = value;
  }
  template <class T, class F>
  static __device__ __forceinline__ void zip_left(T& out, F f, const T& a, const T& fill) {
    const T left = __shfl_up_sync(kAll, a, 1);
    out = f(a, lane() == 0 ? fill : left);
  }
  template <class T, class F>
  static __device__ __forceinline__ void zip_left_keep_two(T& out, F f, const T& a) {
    const T left = __shfl_up_sync(kAll, a, 1);
    out = f(a, lane() < 2 ? T{0} : left);
  }

  template <class T>
  static __device__ __forceinline__ void inclusive_scan(T& a) {
    const unsigned id = lane();
    unroll<5>([&](auto step) {
      constexpr unsigned kDistance = 1u << decltype(step)::value;
      const T left = __shfl_up_sync(kAll, a, kDistance);
      a = static_cast<T>(a + (id >= kDistance ? left : T{0}));
    });
  }
  static __device__ __forceinline__ std::uint32_t ballot(bool flag) { return __ballot_sync(kAll, flag); }
  static __device__ __forceinline__ bool any(bool flag) { return __any_sync(kAll, flag) != 0; }
  static __device__ __forceinline__ std::uint32_t reduce_add(std::uint32_t a) { return __reduce_add_sync(kAll, a); }
  static __device__ __forceinline__ std::uint32_t reduce_or(std::uint32_t a) { return __reduce_or_sync(kAll, a); }
  static __device__ __forceinline__ std::uint64_t reduce_or(std::uint64_t a) {
    const std::uint32_t low = __reduce_or_sync(kAll, static_cast<std::uint32_t>(a));
    const std::uint32_t high = __reduce_or_sync(kAll, static_cast<std::uint32_t>(a >> 32));
    return low | static_cast<std::uint64_t>(high) << 32;
  }
  template <class T>
  static __device__ __forceinline__ void exclusive_scan(T& a) {
    const T own = a;
    inclusive_scan(a);
    a = static_cast<T>(a - own);
  }
  template <class T>
  static __device__ __forceinline__ T broadcast(const T& a, unsigned from) {
    return static_cast<T>(__shfl_sync(kAll, a, static_cast<int>(from)));
  }
  template <class T>
  static __device__ __forceinline__ void shuffle(T& out, const T& a, unsigned from) {
    out = __shfl_sync(kAll, a, static_cast<int>(from));
  }
  template <class T>
  static __device__ __forceinline__ void shift_down(T& out, const T& a) {
    out = static_cast<T>(__shfl_down_sync(kAll, a, 1));
  }
  /// What the lanes wrote to memory before is seen by all of them after.
  static __device__ __forceinline__ void sync() { __syncwarp(); }

  /// Memory that lanes share, as one lane or all of them reach it.
  template <class T>
  static __device__ __forceinline__ T load(const T* at, std::size_t) {
    return *at;
  }
  template <class T>
  static __device__ __forceinline__ T load_same(const T* at) {
    return *at;
  }
  template <class T>
  static __device__ __forceinline__ void store(T* at, std::size_t, T value) {
    *at = value;
  }
  /// Adds to what several lanes, of several warps too, add to at the same time.
  static __device__ __forceinline__ void add_to(std::uint32_t* at, std::size_t, std::uint32_t value) {
    atomicAdd(at, value);
  }
};

}  // namespace quern::kernels
