// Logarithms in integers, the same on every machine: what estimates of bits are made of.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/common/bits.h"

namespace quern::kernels {

namespace detail {

/// log2(1 + i/256) in units of 2^-12, by repeated squaring in integers.
constexpr std::array<std::uint16_t, 256> make_log2_table() {
  std::array<std::uint16_t, 256> table{};
  for (std::uint64_t i = 0; i < 256; ++i) {
    std::uint64_t x = (256 + i) << 22;  // in [1, 2) with 30 fraction bits
    std::uint32_t log = 0;
    for (int bit = 0; bit < 12; ++bit) {
      x = x * x >> 30;
      log <<= 1;
      if (x >= std::uint64_t{1} << 31) {
        x >>= 1;
        log |= 1;
      }
    }
    table[i] = static_cast<std::uint16_t>(log);
  }
  return table;
}
inline constexpr std::array<std::uint16_t, 256> kLog2 = make_log2_table();

}  // namespace detail

/// log2(x) in units of 2^-12, rounded down to the table's precision; x >= 1.
constexpr std::uint32_t log2_fixed(std::uint32_t x) {
  const std::uint32_t exponent = bit_length(x) - 1;
  const std::uint32_t mantissa = exponent >= 8 ? x >> (exponent - 8) : x << (8 - exponent);
  return (exponent << 12) + detail::kLog2[mantissa & 255];
}

}  // namespace quern::kernels
