// Numbers in files of other programs: little- or big-endian bytes to values and back. quern's own formats are read
// through libcompress/format.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace quern::lidar {

template <std::size_t kBytes>
using UnsignedOf = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t, std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

/// `at` has sizeof(T) bytes.
template <class T>
T load_le(const std::uint8_t* at) {
  UnsignedOf<sizeof(T)> bits = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    bits = static_cast<UnsignedOf<sizeof(T)>>(bits | (static_cast<UnsignedOf<sizeof(T)>>(at[i]) << (8 * i)));
  return std::bit_cast<T>(bits);
}

template <class T>
void store_le(T value, std::uint8_t* at) {
  const auto bits = std::bit_cast<UnsignedOf<sizeof(T)>>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i) at[i] = static_cast<std::uint8_t>(bits >> (8 * i));
}

/// Appends to a vector of bytes.
template <class T, class Bytes>
void append_le(T value, Bytes& out) {
  std::uint8_t room[sizeof(T)];
  store_le(value, room);
  out.insert(out.end(), room, room + sizeof(T));
}

}  // namespace quern::lidar
