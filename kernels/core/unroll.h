// A loop that is always unrolled: the index is a constant in every pass, so arrays indexed by it live in registers.
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

}  // namespace quern::kernels
