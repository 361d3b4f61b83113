// One element of an array, by its bits and a width that is known while the kernel runs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

/// Writes one element's bits.
template <class X>
[[gnu::always_inline]] constexpr void put_element(void* out, std::size_t width, std::uint64_t at, std::uint64_t bits,
                                                  std::size_t lane) {
  switch (width) {
    case 1: X::store(static_cast<std::uint8_t*>(out) + at, lane, static_cast<std::uint8_t>(bits)); break;
    case 2: X::store(static_cast<std::uint16_t*>(out) + at, lane, static_cast<std::uint16_t>(bits)); break;
    case 4: X::store(static_cast<std::uint32_t*>(out) + at, lane, static_cast<std::uint32_t>(bits)); break;
    default: X::store(static_cast<std::uint64_t*>(out) + at, lane, bits); break;
  }
}

}  // namespace quern::kernels
