// What the stencil tests share: fields with structure, and one array through plan, encode, open and decode.
#pragma once

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <quern/codec.h>

#include "codecs/stencil/stencil.h"
#include "tests/support/coded_array.h"

namespace quern::codec::stencil::test {

using Bytes = Vector<std::uint8_t>;

using quern::testing::Scratch;

inline Shape shape_of(std::initializer_list<std::uint64_t> extents) {
  const Vector<std::uint64_t> list(extents);
  return Shape::make(list).value();
}

/// Waves along every axis with a little noise, between -3 and 3; the same for the same seed.
inline std::vector<double> waves(const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<double> values(shape.elems());
  for (std::size_t i = 0; i < values.size(); ++i) {
    double v = 0;
    std::uint64_t rest = i;
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      v += std::sin(0.11 * static_cast<double>(rest % shape[axis]) * static_cast<double>(axis + 1));
      rest /= shape[axis];
    }
    values[i] = v + 0.01 * (static_cast<double>(random() % 1000) / 1000 - 0.5);
  }
  return values;
}

template <class T>
Bytes as_bytes(const std::vector<double>& values) {
  Bytes bytes(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T v = static_cast<T>(values[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &v, sizeof(T));
  }
  return bytes;
}

/// An array through this codec, under an absolute bound.
class Coding : public quern::testing::CodedArray {
 public:
  Coding(DType dtype, const Shape& shape, Bytes data, double bound, const Settings& settings = {}, Bytes special = {},
         const char* goal = "ratio")
      : CodedArray(stencil_codec(), dtype, shape, std::move(data), std::move(special),
                   {{BoundKind::abs, bound}, settings, goal}) {}
};

/// Elements of `back` further than `bound` from `data`, special ones left out.
template <class T>
std::size_t count_missed(const Coding& coding, const Bytes& back, double bound) {
  std::size_t missed = 0;
  for (std::size_t i = 0; i < back.size() / sizeof(T); ++i) {
    if (!coding.special().empty() && coding.special()[i] != 0) continue;
    T x;
    T r;
    std::memcpy(&x, coding.data().data() + i * sizeof(T), sizeof(T));
    std::memcpy(&r, back.data() + i * sizeof(T), sizeof(T));
    const bool same = std::memcmp(&x, &r, sizeof(T)) == 0;
    if (!same && !(std::fabs(static_cast<double>(x) - static_cast<double>(r)) <= bound)) ++missed;
  }
  return missed;
}

}  // namespace quern::codec::stencil::test
