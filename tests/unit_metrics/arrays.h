// Small arrays for the tests: typed values in, views out.
#pragma once

#include <bit>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <quern/array.h>

namespace quern::test {

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::int8_t>) return DType::i8;
  if constexpr (std::is_same_v<T, std::int16_t>) return DType::i16;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::u8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return DType::u16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return DType::u32;
  return DType::u64;
}

inline Shape shape_of(std::initializer_list<std::uint64_t> extents) {
  return Shape::make({extents.begin(), extents.size()}).value();
}

/// View of a vector that must outlive it.
template <class T>
ArrayView view(const std::vector<T>& values, const Shape& shape, DType dtype = dtype_of<T>()) {
  return {values.data(), dtype, shape};
}

template <class T>
ArrayView view(const std::vector<T>& values, DType dtype = dtype_of<T>()) {
  return view(values, shape_of({values.size()}), dtype);
}

}  // namespace quern::test
