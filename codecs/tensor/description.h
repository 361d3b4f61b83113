// What a tensor is to this codec: an element type of safetensors and a shape, cut into chunks of 1 MiB.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <quern/dtype.h>
#include <quern/shape.h>

namespace quern::codec::tensor {

constexpr std::uint8_t stored_number(DType type) { return static_cast<std::uint8_t>(type); }

/// Element types of safetensors. The numbers are stored; where quern::DType has the type they are its numbers.
enum class ElementType : std::uint8_t {
  f16 = stored_number(DType::f16),
  bf16 = stored_number(DType::bf16),
  f32 = stored_number(DType::f32),
  f64 = stored_number(DType::f64),
  f8_e4m3 = 5,
  f8_e5m2 = 6,
  i8 = stored_number(DType::i8),
  i16 = stored_number(DType::i16),
  i32 = stored_number(DType::i32),
  i64 = stored_number(DType::i64),
  u8 = stored_number(DType::u8),
  u16 = stored_number(DType::u16),
  u32 = stored_number(DType::u32),
  u64 = stored_number(DType::u64),
  boolean = 24,
  f8_e4m3fnuz = 25,
  f8_e5m2fnuz = 26,
  f8_e8m0 = 27,
  c64 = 28,   ///< two f32, real part first
  c128 = 29,  ///< two f64
};

/// True when `raw` is the stored number of a type.
constexpr bool is_known_element(std::uint8_t raw) {
  return is_known_dtype(raw) || raw == 5 || raw == 6 || (raw >= 24 && raw <= 29);
}

/// Bytes of one element: 1, 2, 4, 8 or 16; 0 for a number that is no type.
constexpr std::size_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::f8_e4m3:
    case ElementType::f8_e5m2:
    case ElementType::boolean:
    case ElementType::f8_e4m3fnuz:
    case ElementType::f8_e5m2fnuz:
    case ElementType::f8_e8m0: return 1;
    case ElementType::c64: return 8;
    case ElementType::c128: return 16;
    default: return is_known_dtype(static_cast<std::uint8_t>(type)) ? dtype_bytes(static_cast<DType>(type)) : 0;
  }
}

/// Real numbers with a sign, an exponent and a fraction.
constexpr bool is_float(ElementType type) {
  return static_cast<std::uint8_t>(type) <= 6 || type == ElementType::f8_e4m3fnuz || type == ElementType::f8_e5m2fnuz;
}

/// The type of the numbers that an element is made of: of complex types that of their two parts, else the type itself.
constexpr ElementType part_type(ElementType type) {
  if (type == ElementType::c64) return ElementType::f32;
  return type == ElementType::c128 ? ElementType::f64 : type;
}

/// Rank 0 (one element) to 8, slowest axis first; extents may be 0.
using TensorShape = Shape;

inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;  ///< raw bytes of a chunk, but the last of a tensor

struct TensorDescription {
  ElementType type = ElementType::u8;
  TensorShape shape;

  constexpr std::uint64_t elems() const { return shape.elems(); }
  constexpr std::uint64_t bytes() const { return elems() * element_bytes(type); }
  /// Chunks: elements in index order, each chunk filled before the next. 0 for a tensor without elements.
  constexpr std::uint64_t chunks() const { return bytes() / kChunkBytes + (bytes() % kChunkBytes != 0 ? 1 : 0); }
  /// Where a chunk's raw bytes begin in the tensor, and how many there are; index < chunks().
  constexpr std::uint64_t chunk_begin(std::uint64_t index) const { return index * kChunkBytes; }
  constexpr std::size_t chunk_bytes(std::uint64_t index) const {
    return static_cast<std::size_t>(std::min<std::uint64_t>(kChunkBytes, bytes() - chunk_begin(index)));
  }
};

}  // namespace quern::codec::tensor
