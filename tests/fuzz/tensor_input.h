// What fuzz_tensor and the seeds of its corpus agree on: element types, sizes, and the base that differences are to.
// Input: direction, type, mode, elements (u16), level of zstd; to decode: length of the side, side, chunk; else values.
#pragma once

#include <vector>

#include "codecs/tensor/tensor.h"

namespace quern::fuzz {

inline constexpr codec::tensor::ElementType kTensorTypes[] = {
    codec::tensor::ElementType::f32, codec::tensor::ElementType::bf16,    codec::tensor::ElementType::f16,
    codec::tensor::ElementType::f64, codec::tensor::ElementType::u8,      codec::tensor::ElementType::i32,
    codec::tensor::ElementType::i64, codec::tensor::ElementType::f8_e4m3, codec::tensor::ElementType::boolean};
inline constexpr codec::tensor::Mode kTensorModes[] = {codec::tensor::Mode::planes, codec::tensor::Mode::delta,
                                                       codec::tensor::Mode::raw, codec::tensor::Mode::constant,
                                                       codec::tensor::Mode::derived};

/// Bytes of no meaning, the same each time, with exponents of small numbers.
inline std::vector<std::uint8_t> tensor_base(std::size_t bytes) {
  std::vector<std::uint8_t> base(bytes);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < bytes; ++i) {
    state = state * 1664525u + 1013904223u;
    base[i] =
        i % 4 == 3 ? static_cast<std::uint8_t>(0x3c ^ (state >> 31 << 7)) : static_cast<std::uint8_t>(state >> 24);
  }
  return base;
}

}  // namespace quern::fuzz
