// CUDA's arithmetic on bits and its separately rounded operations; nothing here concerns other threads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

inline int __popc(unsigned a) { return std::popcount(a); }
inline int __popcll(unsigned long long a) { return std::popcount(a); }
inline int __clz(int a) { return std::countl_zero(static_cast<unsigned>(a)); }
inline int __clzll(long long a) { return std::countl_zero(static_cast<unsigned long long>(a)); }
/// Number of the lowest bit that is set, from 1; 0 for 0.
inline int __ffs(int a) { return a == 0 ? 0 : 1 + std::countr_zero(static_cast<unsigned>(a)); }
inline int __ffsll(long long a) { return a == 0 ? 0 : 1 + std::countr_zero(static_cast<unsigned long long>(a)); }
inline unsigned __brev(unsigned a) {
  unsigned out = 0;
  for (unsigned i = 0; i < 32; ++i) out |= (a >> i & 1u) << (31 - i);
  return out;
}
inline unsigned long long __brevll(unsigned long long a) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(a))) << 32 |
         __brev(static_cast<unsigned>(a >> 32));
}

/// 32 bits of high:low, shifted by the distance modulo 32, or (c) by 32 at most.
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const std::uint64_t both = static_cast<std::uint64_t>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const std::uint64_t both = static_cast<std::uint64_t>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31));
}
inline unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
inline unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}
/// Four bytes of y:x, each chosen by a hexadecimal digit of the selector; bit 3 of a digit spreads the byte's sign.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t both = static_cast<std::uint64_t>(y) << 32 | x;
  unsigned out = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned digit = selector >> (4 * i);
    unsigned byte = static_cast<unsigned>(both >> (8 * (digit & 7))) & 0xff;
    if ((digit & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    out |= byte << (8 * i);
  }
  return out;
}

inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(a) * b >> 32);
}
inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<std::int64_t>(a) * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<unsigned long long>(static_cast<Wide>(a) * b >> 64);
}
inline long long __mul64hi(long long a, long long b) {
  __extension__ using Wide = __int128;
  return static_cast<long long>(static_cast<Wide>(a) * b >> 64);
}

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }

inline unsigned __float_as_uint(float a) { return std::bit_cast<unsigned>(a); }
inline int __float_as_int(float a) { return std::bit_cast<int>(a); }
inline float __uint_as_float(unsigned a) { return std::bit_cast<float>(a); }
inline float __int_as_float(int a) { return std::bit_cast<float>(a); }
inline long long __double_as_longlong(double a) { return std::bit_cast<long long>(a); }
inline double __longlong_as_double(long long a) { return std::bit_cast<double>(a); }

/// Loads and stores with hints for the caches.
template <class T>
T __ldg(const T* at) {
  return *at;
}
template <class T>
T __ldcs(const T* at) {
  return *at;
}
template <class T>
T __ldcg(const T* at) {
  return *at;
}
template <class T>
void __stcs(T* at, T value) {
  *at = value;
}
template <class T>
void __stcg(T* at, T value) {
  *at = value;
}

#define SIMT_MIN_MAX(T)                            \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
SIMT_MIN_MAX(int)
SIMT_MIN_MAX(unsigned)
SIMT_MIN_MAX(long)
SIMT_MIN_MAX(unsigned long)
SIMT_MIN_MAX(long long)
SIMT_MIN_MAX(unsigned long long)
#undef SIMT_MIN_MAX
