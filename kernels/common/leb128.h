// LEB128: unsigned numbers in groups of seven bits, lowest first, in the fewest bytes possible, at most ten
// (docs/format.md, chapter 1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"

namespace quern::kernels {

inline constexpr std::size_t kMaxLeb128Bytes = 10;

/// Bytes of a number, 1 to 10.
[[gnu::always_inline]] constexpr std::uint32_t leb128_bytes(std::uint64_t v) { return (bit_length(v | 1) + 6) / 7; }

/// Appends a number; returns the new end.
[[gnu::always_inline]] constexpr std::uint8_t* put_leb128(std::uint8_t* out, std::uint64_t v) {
  while (v >= 0x80) {
    *out++ = static_cast<std::uint8_t>(v | 0x80);
    v >>= 7;
  }
  *out++ = static_cast<std::uint8_t>(v);
  return out;
}

/// Reads a number; false at the end of the input or when it is not the shortest form.
[[gnu::always_inline]] constexpr bool get_leb128(const std::uint8_t*& in, const std::uint8_t* end, std::uint64_t& v) {
  v = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    if (in == end) return false;
    const std::uint64_t byte = *in++;
    if (shift == 63 && byte > 1) return false;
    v |= (byte & 0x7f) << shift;
    if (byte < 0x80) return byte != 0 || shift == 0;
  }
  return false;
}

/// Why get_leb128 refused what begins at `in`.
enum class Leb128Fault : std::uint8_t {
  cut_short,     ///< the input ends inside the number
  too_large,     ///< it does not fit in 64 bits
  not_shortest,  ///< it has a byte more than it needs
};
[[gnu::always_inline]] constexpr Leb128Fault leb128_fault(const std::uint8_t* in, const std::uint8_t* end) {
  for (unsigned bytes = 0; bytes < kMaxLeb128Bytes; ++bytes) {
    if (in == end) return Leb128Fault::cut_short;
    if (*in++ < 0x80) break;
  }
  // The tenth byte may only bring bit 63.
  return in[-1] == 0 ? Leb128Fault::not_shortest : Leb128Fault::too_large;
}

}  // namespace quern::kernels
