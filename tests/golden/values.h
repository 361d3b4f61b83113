// Building blocks of the golden arrays: hashed noise and arrays filled from a function of the coordinates.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>

#include "tests/support/array_cases.h"

namespace quern::golden {

/// A hash of its arguments, uniform in 0..limit-1.
inline std::uint64_t noise(std::uint64_t seed, std::uint64_t index, std::uint64_t limit) {
  std::uint64_t x = seed * UINT64_C(0x9E3779B97F4A7C15) + index * UINT64_C(0xD1B54A32D192ED03) + 1;
  x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
  x ^= x >> 31;
  return limit == 0 ? x : x % limit;
}

/// Hashed noise in -limit/2 .. limit/2 as a whole number.
inline std::int64_t swing(std::uint64_t seed, std::uint64_t index, std::uint64_t limit) {
  return static_cast<std::int64_t>(noise(seed, index, limit + 1)) - static_cast<std::int64_t>(limit / 2);
}

inline void set_bits(testing::OwnedArray& array, std::uint64_t index, std::uint64_t bits) {
  const std::size_t width = dtype_bytes(array.dtype);
  for (std::size_t i = 0; i < width; ++i) array.bytes[index * width + i] = static_cast<std::uint8_t>(bits >> (8 * i));
}

inline testing::OwnedArray empty_array(DType dtype, std::initializer_list<std::uint64_t> extents) {
  testing::OwnedArray array;
  array.dtype = dtype;
  array.shape = testing::shape_of(extents);
  array.bytes.resize(array.shape.elems() * dtype_bytes(dtype));
  return array;
}

/// value(i) as a double for every flat index.
template <class Value>
testing::OwnedArray values_of(DType dtype, std::initializer_list<std::uint64_t> extents, Value value) {
  testing::OwnedArray array = empty_array(dtype, extents);
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i) testing::store_element(array, i, value(i));
  return array;
}

/// bits(i) for every flat index.
template <class Bits>
testing::OwnedArray bits_of(DType dtype, std::initializer_list<std::uint64_t> extents, Bits bits) {
  testing::OwnedArray array = empty_array(dtype, extents);
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i) set_bits(array, i, bits(i));
  return array;
}

}  // namespace quern::golden
