// Loops that say how they are compiled for a device. unroll: the index is a constant in every pass, so arrays indexed
// by it live in registers. rolled: one copy of the body, whatever the compiler thinks of it. in_fours and in_eights:
// four and eight copies, so that what they load is on its way at the same time.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

namespace quern::kernels {

/// Calls f(std::integral_constant<std::size_t, i>) for i = 0 .. N-1.
template <std::size_t N, class F>
[[gnu::always_inline]] constexpr void unroll(F&& f) {
  [&]<std::size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
    (f(std::integral_constant<std::size_t, I>{}), ...);
  }
  (std::make_index_sequence<N>{});
}

/// Calls f(i) for i = begin .. end-1.
template <class F>
[[gnu::always_inline]] constexpr void rolled(unsigned begin, unsigned end, F&& f) {
#if defined(__CUDA_ARCH__)
#pragma unroll 1
#endif
  for (unsigned i = begin; i < end; ++i) f(i);
}

/// Calls f(i) for i = begin .. end-1.
template <class F>
[[gnu::always_inline]] constexpr void in_eights(unsigned begin, unsigned end, F&& f) {
#if defined(__CUDA_ARCH__)
#pragma unroll 8
#endif
  for (unsigned i = begin; i < end; ++i) f(i);
}
template <class F>
[[gnu::always_inline]] constexpr void in_fours(unsigned begin, unsigned end, F&& f) {
#if defined(__CUDA_ARCH__)
#pragma unroll 4
#endif
  for (unsigned i = begin; i < end; ++i) f(i);
}

}  // namespace quern::kernels
