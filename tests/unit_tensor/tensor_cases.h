// Tensors that the tests of the tensor codec share: seeded, of every class of data that has its own difficulty.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "codecs/tensor/tensor.h"

namespace quern::codec::tensor {

using Bytes = std::vector<std::uint8_t>;

inline constexpr ElementType kAllTypes[] = {
    ElementType::boolean,     ElementType::u8,      ElementType::i8,  ElementType::f8_e4m3,
    ElementType::f8_e5m2,     ElementType::u16,     ElementType::i16, ElementType::f16,
    ElementType::bf16,        ElementType::u32,     ElementType::i32, ElementType::f32,
    ElementType::u64,         ElementType::i64,     ElementType::f64, ElementType::f8_e4m3fnuz,
    ElementType::f8_e5m2fnuz, ElementType::f8_e8m0, ElementType::c64, ElementType::c128};

inline constexpr const char* kAllClasses[] = {"noise", "constant", "runs", "weights", "specials", "wide", "small"};

inline TensorDescription description_of(ElementType type, std::uint64_t elems) {
  const std::uint64_t extents[] = {elems};
  return {type, *TensorShape::make(extents)};
}

inline void put(Bytes& bytes, std::size_t i, std::size_t width, std::uint64_t word) {
  for (std::size_t k = 0; k < width; ++k) bytes[i * width + k] = static_cast<std::uint8_t>(word >> (8 * (k % 8)));
}

/// A value as the type stores it: floats rounded towards zero, which is enough here.
inline std::uint64_t word_of(ElementType type, double value) {
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  switch (type) {
    case ElementType::f64: return std::bit_cast<std::uint64_t>(value);
    case ElementType::f32: return single;
    case ElementType::bf16: return single >> 16;
    case ElementType::f16: {
      const int exponent = static_cast<int>(single >> 23 & 0xff) - 112;
      const std::uint32_t magnitude = exponent <= 0 ? 0
                                      : exponent >= 31
                                          ? 0x7c00
                                          : static_cast<std::uint32_t>(exponent) << 10 | (single >> 13 & 0x3ff);
      return (single >> 16 & 0x8000) | magnitude;
    }
    default: return static_cast<std::uint64_t>(static_cast<std::int64_t>(value * 1000));
  }
}

inline Bytes make_values(ElementType type, std::size_t elems, const std::string& kind, unsigned seed = 1) {
  const std::size_t width = element_bytes(type);
  Bytes bytes(elems * width);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < elems; ++i) {
    std::uint64_t word = random();
    if (kind == "constant") word = 0x3f8000003f803c38u;
    if (kind == "runs") word = i / 1000 % 3 == 0 ? 0 : i / 100 % 2 == 0 ? word : 0x4141414141414141u;
    if (kind == "weights") word = word_of(type, 0.02 * normal(random));
    if (kind == "small") word = word % 7;
    if (kind == "wide") {
      const double power = static_cast<double>(static_cast<int>(word % 61) - 30);
      word = word_of(type, normal(random) * std::pow(10.0, power));
    }
    if (kind == "specials") {
      // NaN with payloads of both signs, infinities, both zeros, denormals.
      const std::uint64_t sign = word >> 63 << 63;
      const std::uint64_t noise = word & 0xffff;
      const std::uint64_t f64[] = {0x7ff0000000000000u, 0x7ff0000000000000u | noise << 20 | 1, 0, noise,
                                   0x7ff8000000000000u | noise};
      word = f64[word >> 20 & 3] | sign;
      if (width == 4) word = (word >> 32) | noise;
      if (width == 2) word = word >> 48 | (noise & 7);
    }
    if (type == ElementType::boolean) word &= 1;
    put(bytes, i, width, word);
  }
  return bytes;
}

/// Values a few steps of training later: most bits above the lowest stay.
inline Bytes drifted(const Bytes& bytes, std::size_t element, unsigned seed) {
  const std::size_t width = std::min<std::size_t>(element, 8);  // the two parts of a C128 drift on their own
  Bytes moved = bytes;
  std::mt19937_64 random(seed);
  for (std::size_t i = 0; i < bytes.size() / width; ++i) {
    std::uint64_t word = 0;
    for (std::size_t k = 0; k < width; ++k) word |= std::uint64_t{bytes[i * width + k]} << (8 * k);
    put(moved, i, width, word + random() % 16 - 5);
  }
  return moved;
}

}  // namespace quern::codec::tensor
