// Element types of arrays. The numeric values are stored in streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace quern {

enum class DType : std::uint8_t {
  f16 = 1,
  bf16 = 2,
  f32 = 3,
  f64 = 4,
  i8 = 8,
  i16 = 9,
  i32 = 10,
  i64 = 11,
  u8 = 16,
  u16 = 17,
  u32 = 18,
  u64 = 19,
};

/// True when `raw` is the stored number of a known type.
constexpr bool is_known_dtype(std::uint8_t raw) {
  return (raw >= 1 && raw <= 4) || (raw >= 8 && raw <= 11) || (raw >= 16 && raw <= 19);
}

constexpr bool is_float(DType t) { return static_cast<std::uint8_t>(t) <= 4; }
constexpr bool is_integer(DType t) { return !is_float(t); }
constexpr bool is_signed_integer(DType t) {
  return static_cast<std::uint8_t>(t) >= 8 && static_cast<std::uint8_t>(t) <= 11;
}

/// Bytes of one element: 1, 2, 4 or 8.
constexpr std::size_t dtype_bytes(DType t) {
  switch (t) {
    case DType::i8:
    case DType::u8: return 1;
    case DType::f16:
    case DType::bf16:
    case DType::i16:
    case DType::u16: return 2;
    case DType::f32:
    case DType::i32:
    case DType::u32: return 4;
    case DType::f64:
    case DType::i64:
    case DType::u64: return 8;
  }
  return 0;
}

/// "f32", "bf16", "u8", ...
const char* dtype_name(DType t);
/// The type of that name, or nothing.
std::optional<DType> parse_dtype(std::string_view name);

}  // namespace quern
