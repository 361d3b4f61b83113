// What the lossless tests share: seeded data of every kind, and a whole array through plan, encode, open and decode.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <quern/codec.h>

#include "codecs/lossless/lossless.h"
#include "tests/support/coded_array.h"

namespace quern::codec::lossless::test {

using Bytes = Vector<std::uint8_t>;

inline constexpr DType kAllTypes[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,
                                      DType::i32, DType::i64,  DType::u8,  DType::u16, DType::u32, DType::u64};

using quern::testing::Scratch;

inline Shape shape_of(std::initializer_list<std::uint64_t> extents) {
  const Vector<std::uint64_t> list(extents);
  return Shape::make(list).value();
}

/// Elements from 64-bit patterns: the low bytes of each.
inline Bytes elements(DType dtype, std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& pattern) {
  const std::size_t width = dtype_bytes(dtype);
  Bytes data(count * width);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t bits = pattern(i);
    for (std::size_t b = 0; b < width; ++b) data[i * width + b] = static_cast<std::uint8_t>(bits >> (8 * b));
  }
  return data;
}

/// An array through this codec.
class Coding : public quern::testing::CodedArray {
 public:
  Coding(DType dtype, const Shape& shape, const Bytes& data, const Settings& settings = {})
      : CodedArray(lossless_codec(), dtype, shape, data, {}, {{}, settings}),
        name_(std::string(dtype_name(dtype)) + ' ' + std::string(shape.text())) {}

  /// Encodes and decodes everything; returns the bytes it took, and fails the test on any difference.
  std::size_t round_trip() const {
    Bytes back;
    const std::size_t total = CodedArray::round_trip(back);
    EXPECT_TRUE(back == data()) << name_ << " does not come back";
    return total;
  }

 private:
  std::string name_;
};

}  // namespace quern::codec::lossless::test
