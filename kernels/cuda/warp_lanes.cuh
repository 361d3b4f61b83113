// Execution model for CUDA: a vector of 32 lanes is one register in each thread of a warp. All 32 threads call every
// operation together; what an operation returns by value is the same in all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/tile.h"
#include "kernels/core/unroll.h"

namespace quern::kernels {

struct WarpLanes {
  static constexpr unsigned kAll = 0xffffffffu;

  template <class T>
  using vec = T;

  static __device__ __forceinline__ unsigned lane() {
    unsigned id;
    asm("mov.u32 %0, %%laneid;" : "=r"(id));
    return id;
  }

  /// Rows are constants of the compiler, so that arrays indexed by them are registers.
  template <class F>
  static __device__ __forceinline__ void rows(F&& f) {
    unroll<kRows>(f);
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
  template <class T, class F, class... V>
  static __device__ __forceinline__ void map(T& out, F f, const V&... in) {
    out = f(in...);
  }

  template <class T>
  static __device__ __forceinline__ void shift_up(T& out, const T& a, const T& fill) {
    const T left = __shfl_up_sync(kAll, a, 1);
    out = lane() == 0 ? fill : left;
  }
  template <class T, class F>
  static __device__ __forceinline__ void zip_left(T& out, F f, const T& a, const T& fill) {
    const T left = __shfl_up_sync(kAll, a, 1);
    out = f(a, lane() == 0 ? fill : left);
  }
  template <class T, class F>
  static __device__ __forceinline__ void zip_left_from_zero(T& out, F f, const T& a) {
    const T left = __shfl_up_sync(kAll, a, 1);
    out = f(a, lane() == 0 ? T{0} : left);
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
  template <class T>
  static __device__ __forceinline__ void scan_skipping_first(T& a) {
    const T first = a;
    T rest = lane() == 0 ? T{0} : a;
    inclusive_scan(rest);
    a = lane() == 0 ? first : rest;
  }
  template <class T>
  static __device__ __forceinline__ void add_to_first(T& a, T value) {
    if (lane() == 0) a = static_cast<T>(a + value);
  }
  template <class T>
  static __device__ __forceinline__ void add_first_of(T& a, const T& b) {
    if (lane() == 0) a = static_cast<T>(a + b);
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
  static __device__ __forceinline__ void exclusive_scan(std::uint32_t& a) {
    const std::uint32_t own = a;
    inclusive_scan(a);
    a -= own;
  }
  template <class T>
  static __device__ __forceinline__ T broadcast(const T& a, unsigned from) {
    return __shfl_sync(kAll, a, static_cast<int>(from));
  }
  template <class T>
  static __device__ __forceinline__ void gather(T& out, const T& a, const std::uint32_t& from) {
    out = __shfl_sync(kAll, a, static_cast<int>(from));
  }
  /// What the lanes wrote to memory before is seen by all of them after.
  static __device__ __forceinline__ void sync() { __syncwarp(); }
};

}  // namespace quern::kernels
