// Bit planes of a tile: byte b of the 32 residuals of a lane becomes 8 plane words; bit r of a plane word is row r.
// Works byte by byte (4 rows packed in a word, then an 8x8 bit transposition in three exchange steps), so a tile pays
// for the bytes its residuals have and no more. Over an execution model X.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/unroll.h"
#include "kernels/lorenzo/tile.h"

namespace quern::kernels {

/// Exchanges the bits of a under mask << shift with the bits of b under mask.
[[gnu::always_inline]] constexpr void exchange_bits(std::uint32_t& a, std::uint32_t& b, unsigned shift,
                                                    std::uint32_t mask) {
  const std::uint32_t t = ((a >> shift) ^ b) & mask;
  b ^= t;
  a ^= t << shift;
}

/// 8 words of 4 bytes: in every byte column, bit j of word i and bit i of word j change places.
[[gnu::always_inline]] constexpr void transpose_bits_8x8(std::uint32_t (&a)[8]) {
  exchange_bits(a[0], a[4], 4, 0x0f0f0f0fu);
  exchange_bits(a[1], a[5], 4, 0x0f0f0f0fu);
  exchange_bits(a[2], a[6], 4, 0x0f0f0f0fu);
  exchange_bits(a[3], a[7], 4, 0x0f0f0f0fu);
  exchange_bits(a[0], a[2], 2, 0x33333333u);
  exchange_bits(a[1], a[3], 2, 0x33333333u);
  exchange_bits(a[4], a[6], 2, 0x33333333u);
  exchange_bits(a[5], a[7], 2, 0x33333333u);
  exchange_bits(a[0], a[1], 1, 0x55555555u);
  exchange_bits(a[2], a[3], 1, 0x55555555u);
  exchange_bits(a[4], a[5], 1, 0x55555555u);
  exchange_bits(a[6], a[7], 1, 0x55555555u);
}

/// The same for machines that choose bits of two words in one operation.
[[gnu::always_inline]] constexpr void transpose_bits_8x8_by_choice(std::uint32_t (&a)[8]) {
  const auto exchange = [&](unsigned i, unsigned j, unsigned shift, std::uint32_t low) {
    const std::uint32_t both_low = (a[j] & ~low) | (a[i] >> shift & low);
    a[i] = (a[i] & low) | (a[j] << shift & ~low);
    a[j] = both_low;
  };
  for (unsigned i = 0; i < 4; ++i) exchange(i, i + 4, 4, 0x0f0f0f0fu);
  for (unsigned i = 0; i < 8; i += i % 4 == 1 ? 3 : 1) exchange(i, i + 2, 2, 0x33333333u);
  for (unsigned i = 0; i < 8; i += 2) exchange(i, i + 1, 1, 0x55555555u);
}

/// Byte `b` of residuals z[32] to planes[8] (plane 8b first). W is 32 or 64 bits wide.
template <class X, class W, class In, class Out>
constexpr void byte_to_planes(const In& z, unsigned b, Out&& planes) {
  const unsigned shift = 8 * b;
  X::lanes([&](auto lane) __attribute__((always_inline)) {
    std::uint32_t a[8];
    unroll<8>([&](auto j) __attribute__((always_inline)) {
      const auto byte = [&](const auto& row) __attribute__((always_inline)) {
        return static_cast<std::uint32_t>(X::get(row, lane) >> shift) & 0xffu;
      };
      a[j] = byte(z[j]) | byte(z[j + 8]) << 8 | byte(z[j + 16]) << 16 | byte(z[j + 24]) << 24;
    });
    transpose_bits_8x8(a);
    unroll<8>([&](auto j) __attribute__((always_inline)) { X::set(planes[j], lane, a[j]); });
  });
}

/// Inverse: planes[8] are added into byte `b` of z[32]; `first` says that b is 0 and z is to be overwritten.
template <class X, class W, class In, class Out>
constexpr void planes_to_byte(const In& planes, unsigned b, bool first, Out&& z) {
  typename X::template vec<std::uint32_t> packed[8];
  X::lanes([&](auto lane) __attribute__((always_inline)) {
    std::uint32_t a[8];
    unroll<8>([&](auto j) __attribute__((always_inline)) { a[j] = X::get(planes[j], lane); });
    transpose_bits_8x8(a);
    unroll<8>([&](auto j) __attribute__((always_inline)) { X::set(packed[j], lane, a[j]); });
  });
  const unsigned shift = 8 * b;
  X::rows([&](auto row) {
    const std::size_t r = row;
    const unsigned from = 8 * static_cast<unsigned>(r / 8);
    if (first) {
      X::map(
          z[r], [=](std::uint32_t p) { return static_cast<W>((p >> from) & 0xffu); }, packed[r % 8]);
    } else {
      X::map(
          z[r],
          [=](std::uint32_t p, W low) { return static_cast<W>(low | static_cast<W>((p >> from) & 0xffu) << shift); },
          packed[r % 8], z[r]);
    }
  });
}

}  // namespace quern::kernels
