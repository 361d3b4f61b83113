// Interleaved bits of three coordinates, x most significant: the order in which cubes are coded.
#pragma once

#include <cstdint>

namespace quern::codec::lidar {

inline constexpr unsigned kMostDepth = 21;  ///< bits of a coordinate

/// Bits 0..20 of x to bits 0, 3, ..., 60.
constexpr std::uint64_t spread_bits(std::uint64_t x) {
  x &= 0x1FFFFF;
  x = (x | x << 32) & UINT64_C(0x001F00000000FFFF);
  x = (x | x << 16) & UINT64_C(0x001F0000FF0000FF);
  x = (x | x << 8) & UINT64_C(0x100F00F00F00F00F);
  x = (x | x << 4) & UINT64_C(0x10C30C30C30C30C3);
  return (x | x << 2) & UINT64_C(0x1249249249249249);
}
/// The inverse; other bits are ignored.
constexpr std::uint32_t gather_bits(std::uint64_t x) {
  x &= UINT64_C(0x1249249249249249);
  x = (x | x >> 2) & UINT64_C(0x10C30C30C30C30C3);
  x = (x | x >> 4) & UINT64_C(0x100F00F00F00F00F);
  x = (x | x >> 8) & UINT64_C(0x001F0000FF0000FF);
  x = (x | x >> 16) & UINT64_C(0x001F00000000FFFF);
  return static_cast<std::uint32_t>((x | x >> 32) & 0x1FFFFF);
}
constexpr std::uint64_t morton(std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  return spread_bits(x) << 2 | spread_bits(y) << 1 | spread_bits(z);
}
constexpr std::uint32_t morton_x(std::uint64_t key) { return gather_bits(key >> 2); }
constexpr std::uint32_t morton_y(std::uint64_t key) { return gather_bits(key >> 1); }
constexpr std::uint32_t morton_z(std::uint64_t key) { return gather_bits(key); }

}  // namespace quern::codec::lidar
