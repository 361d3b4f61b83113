// Execution model for CUDA: a vector of 32 lanes is one register in each thread of a warp. All 32 threads call every
// operation together; what an operation returns by value is the same in all of them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/common/lanes.h"
#include "kernels/common/unroll.h"

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

  /// out[l] = a[l] - a[l-1], out[0] = a[0]. One multiplication and addition, where a choice takes an operation more.
  static __device__ __forceinline__ void minus_left(std::uint32_t& out, std::uint32_t a) {
    out = a + __shfl_up_sync(kAll, a, 1) * minus_one_unless_first();
  }
  template <class T>
  static __device__ __forceinline__ void shift_up(T& out, const T& a, const T& fill) {
    const T left = __shfl_up_sync(kAll, a, 1);
    out = lane() == 0 ? fill : left;
  }
  /// Byte b of each of four words, that of the first lowest.
  static __device__ __forceinline__ std::uint32_t gather_bytes(std::uint32_t v0, std::uint32_t v1, std::uint32_t v2,
                                                               std::uint32_t v3, unsigned b) {
    const unsigned pair = b | (b + 4) << 4;
    return __byte_perm(__byte_perm(v0, v1, pair), __byte_perm(v2, v3, pair), 0x5410);
  }

  template <class T>
  static __device__ __forceinline__ void inclusive_scan(T& a) {
#if !defined(QUERN_SIMT)
    if constexpr (sizeof(T) == 4) {
      // A shuffle says whether its lane was there, and only then is what it brings added.
      auto sum = static_cast<std::uint32_t>(a);
      unroll<5>([&](auto step) {
        asm volatile(
            "{ .reg .pred there; .reg .u32 left;"
            " shfl.sync.up.b32 left|there, %0, %1, 0, 0xffffffff; @there add.u32 %0, %0, left; }"
            : "+r"(sum)
            : "n"(1u << decltype(step)::value));
      });
      a = static_cast<T>(sum);
      return;
    }
#endif
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
  static __device__ __forceinline__ std::uint32_t reduce_min(std::uint32_t a) { return __reduce_min_sync(kAll, a); }
  static __device__ __forceinline__ std::uint32_t reduce_max(std::uint32_t a) { return __reduce_max_sync(kAll, a); }
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
  /// Four bytes of high:low, each chosen by three bits of a digit of the selector; bit 3 takes its sign eight times.
  static __device__ __forceinline__ std::uint32_t permute_bytes(std::uint32_t low, std::uint32_t high,
                                                                std::uint32_t selector) {
#if defined(QUERN_SIMT)
    return __byte_perm(low, high, selector);
#else
    // The intrinsic leaves bit 3 of a digit out.
    std::uint32_t out;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(out) : "r"(low), "r"(high), "r"(selector));
    return out;
#endif
  }
  /// The least and the greatest of three words, and the least of three signed ones.
  static __device__ __forceinline__ std::uint32_t least(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if defined(QUERN_SIMT)
    return min(a, min(b, c));
#else
    return __vimin3_u32(a, b, c);
#endif
  }
  static __device__ __forceinline__ std::uint32_t greatest(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
#if defined(QUERN_SIMT)
    return max(a, max(b, c));
#else
    return __vimax3_u32(a, b, c);
#endif
  }
  static __device__ __forceinline__ std::int32_t least_signed(std::int32_t a, std::int32_t b, std::int32_t c) {
#if defined(QUERN_SIMT)
    return min(a, min(b, c));
#else
    return __vimin3_s32(a, b, c);
#endif
  }
  /// Keeps the compiler from computing what follows from these words ahead of a loop in which they are used.
  template <std::size_t N>
  static __device__ __forceinline__ void hold([[maybe_unused]] std::uint32_t (&words)[N]) {
#if !defined(QUERN_SIMT)
    unroll<N>([&](auto i) { asm volatile("" : "+r"(words[i])); });
#endif
  }
  /// The low word of high:low, shifted down by the low five bits of `shift`.
  static __device__ __forceinline__ std::uint32_t funnel_right(std::uint32_t low, std::uint32_t high,
                                                               std::uint32_t shift) {
    return __funnelshift_r(low, high, shift);
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
  /// Bytes appended one by one to memory that lanes share: where, and appending the lowest of a word if `flag`
  /// is not 0.
#if defined(QUERN_SIMT)
  using Append = std::uint8_t*;
  static Append append_at(std::uint8_t* base, std::uint32_t offset) { return base + offset; }
  static void append_if(std::uint32_t flag, Append& at, std::size_t, std::uint32_t word) {
    if (flag != 0) *at++ = static_cast<std::uint8_t>(word);
  }
#else
  using Append = std::uint32_t;
  static __device__ __forceinline__ Append append_at(std::uint8_t* base, std::uint32_t offset) {
    return static_cast<Append>(__cvta_generic_to_shared(base)) + offset;
  }
  static __device__ __forceinline__ void append_if(std::uint32_t flag, Append& at, std::size_t, std::uint32_t word) {
    asm volatile(
        "{ .reg .pred there; setp.ne.u32 there, %1, 0; @there st.shared.u8 [%0], %2; @there add.u32 %0, %0, 1; }"
        : "+r"(at)
        : "r"(flag), "r"(word)
        : "memory");
  }
#endif
  /// Adds to what several lanes, of several warps too, add to at the same time.
  static __device__ __forceinline__ void add_to(std::uint32_t* at, std::size_t, std::uint32_t value) {
    atomicAdd(at, value);
  }
  /// Sets bits, or turns them over, in a word of which several lanes change bits at the same time.
  static __device__ __forceinline__ void set_bits(std::uint32_t* at, std::size_t, std::uint32_t bits) {
    atomicOr(at, bits);
  }
  static __device__ __forceinline__ void flip_bits(std::uint32_t* at, std::size_t, std::uint32_t bits) {
    atomicXor(at, bits);
  }
  /// Adds to what several lanes, of several warps too, add to at the same time, and returns what was there.
  static __device__ __forceinline__ std::uint32_t fetch_add(std::uint32_t* at, std::size_t, std::uint32_t value) {
    return atomicAdd(at, value);
  }
  /// Keeps the least and the greatest of what several lanes, of several warps too, bring at the same time.
  static __device__ __forceinline__ void lower_to(std::uint64_t* at, std::size_t, std::uint64_t value) {
    atomicMin(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
  }
  static __device__ __forceinline__ void raise_to(std::uint64_t* at, std::size_t, std::uint64_t value) {
    atomicMax(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
  }

 private:
  /// Opaque, or the compiler turns the product into a choice.
  static __device__ __forceinline__ std::uint32_t minus_one_unless_first() {
#if defined(QUERN_SIMT)
    return lane() == 0 ? 0u : 0xffffffffu;
#else
    std::uint32_t factor;
    asm("{ .reg .pred first; setp.eq.u32 first, %1, 0; selp.u32 %0, 0, -1, first; }" : "=r"(factor) : "r"(lane()));
    return factor;
#endif
  }
};

}  // namespace quern::kernels
