// Execution model for the CPU: a vector of 32 lanes is an array, an operation is a loop of constant length that the
// compiler turns into SIMD. Isa is a tag type: code of one instruction set never shares a template instance with
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/lanes.h"

namespace quern::kernels {

template <class Isa>
struct CpuLanes {
  template <class T>
  struct alignas(64) vec {
    T v[kLanes];
  };

  /// f(row) for the 32 rows of a tile.
  template <class F>
  [[gnu::always_inline]] static void rows(F&& f) {
    for (std::size_t r = 0; r < kRows; ++r) f(r);
  }
  /// f(lane) for every lane; get and set reach a vector's element there.
  template <class F>
  [[gnu::always_inline]] static void lanes(F&& f) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep  // a lane touches its own elements alone
#endif
    for (std::size_t l = 0; l < kLanes; ++l) f(l);
  }
  template <class T>
  [[gnu::always_inline]] static T get(const vec<T>& a, std::size_t lane) {
    return a.v[lane];
  }
  template <class T>
  [[gnu::always_inline]] static void set(vec<T>& a, std::size_t lane, T value) {
    a.v[lane] = value;
  }

  template <class T, class F, class... V>
  static void map(vec<T>& out, F f, const V&... in) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep  // out may be one of the inputs, never a shifted view of one
#endif
    for (std::size_t l = 0; l < kLanes; ++l) out.v[l] = f(in.v[l]...);
  }

  /// out[l] = a[l-1], out[0] = fill[0].
  template <class T>
  static void shift_up(vec<T>& out, const vec<T>& a, const vec<T>& fill) {
    const T first = fill.v[0];
    for (std::size_t l = 1; l < kLanes; ++l) out.v[l] = a.v[l - 1];
    out.v[0] = first;
  }
  /// out[l] = f(a[l], a[l-1]) for l >= 1, out[0] = f(a[0], fill[0]).
  template <class T, class F>
  static void zip_left(vec<T>& out, F f, const vec<T>& a, const vec<T>& fill) {
    const T first = f(a.v[0], fill.v[0]);
    zip_tail(out, f, a);
    out.v[0] = first;
  }
  /// The same with 0 left of lane 0.
  template <class T, class F>
  static void zip_left_from_zero(vec<T>& out, F f, const vec<T>& a) {
    const T first = f(a.v[0], T{0});
    zip_tail(out, f, a);
    out.v[0] = first;
  }
  /// out[l] = f(a[l], a[l-1]) for l >= 2, f(a[l], 0) for l < 2.
  template <class T, class F>
  static void zip_left_keep_two(vec<T>& out, F f, const vec<T>& a) {
    const T first = f(a.v[0], T{0});
    const T second = f(a.v[1], T{0});
    zip_tail(out, f, a);
    out.v[0] = first;
    out.v[1] = second;
  }

  template <class T>
  static void inclusive_scan(vec<T>& a) {
    T sum = 0;
    for (std::size_t l = 0; l < kLanes; ++l) {
      sum = static_cast<T>(sum + a.v[l]);
      a.v[l] = sum;
    }
  }
  /// Inclusive scan of lanes 1..31; lane 0 stays and takes no part.
  template <class T>
  static void scan_skipping_first(vec<T>& a) {
    T sum = 0;
    for (std::size_t l = 1; l < kLanes; ++l) {
      sum = static_cast<T>(sum + a.v[l]);
      a.v[l] = sum;
    }
  }
  template <class T>
  static void add_to_first(vec<T>& a, T value) {
    a.v[0] = static_cast<T>(a.v[0] + value);
  }
  template <class T>
  static void add_first_of(vec<T>& a, const vec<T>& b) {
    a.v[0] = static_cast<T>(a.v[0] + b.v[0]);
  }

 private:
  /// Lanes 1..31 as two overlapping halves of full vector length.
  template <class T, class F>
  static void zip_tail(vec<T>& __restrict out, F f, const vec<T>& __restrict a) {
    for (std::size_t l = 1; l < 17; ++l) out.v[l] = f(a.v[l], a.v[l - 1]);
    for (std::size_t l = 16; l < 32; ++l) out.v[l] = f(a.v[l], a.v[l - 1]);
  }
};

}  // namespace quern::kernels
