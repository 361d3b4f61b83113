// The range of an array's valid values as integers: the same whatever the order in which elements are looked at.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/element_keys.h"

namespace quern::kernels {

/// A key of Element's traits, widened, as an unsigned number in the same order.
template <class Traits>
[[gnu::always_inline]] constexpr std::uint64_t ordered_key(typename Traits::Key key) {
  if constexpr (std::is_signed_v<typename Traits::Key>)
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(key)) ^ (UINT64_C(1) << 63);
  else
    return key;
}
template <class Traits>
[[gnu::always_inline]] constexpr typename Traits::Key key_of_ordered(std::uint64_t ordered) {
  using Key = typename Traits::Key;
  return static_cast<Key>(std::is_signed_v<Key> ? ordered ^ (UINT64_C(1) << 63) : ordered);
}

/// Ordered keys of the smallest and the largest valid element. All zero to begin with: both are collected by maxima.
struct RangeKeys {
  std::uint64_t complement_of_min = 0;
  std::uint64_t max = 0;
  std::uint64_t valid = 0;  ///< valid elements; where there are none, the keys say nothing
};

/// Keys of the smallest and the largest valid element, where there is one.
template <class Traits>
[[gnu::always_inline]] constexpr typename Traits::Key min_key(const RangeKeys& keys) {
  return key_of_ordered<Traits>(~keys.complement_of_min);
}
template <class Traits>
[[gnu::always_inline]] constexpr typename Traits::Key max_key(const RangeKeys& keys) {
  return key_of_ordered<Traits>(keys.max);
}

}  // namespace quern::kernels
