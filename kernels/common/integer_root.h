// Square roots of whole numbers.
#pragma once

#include <concepts>
#include <cstdint>

namespace quern::kernels {

/// Largest integer whose square is not above n < 2^62. The estimate is corrected, so the result does not depend on it.
template <std::unsigned_integral N>
[[gnu::always_inline]] constexpr std::uint64_t integer_root(N number) {
  const std::uint64_t n = number;
  auto root = static_cast<std::uint64_t>(__builtin_sqrt(static_cast<double>(n)));
  while (root * root > n) --root;
  while ((root + 1) * (root + 1) <= n) ++root;
  return root;
}

}  // namespace quern::kernels
