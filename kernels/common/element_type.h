// Names of element types, and nothing that is done with them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace quern::kernels {

/// Element types by what kernels do with them. The numbers are quern::DType's.
enum class Element : std::uint8_t {
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
  u64 = 19
};

[[gnu::always_inline]] constexpr bool is_element(Element e) {
  const auto n = static_cast<unsigned>(e);
  return (n >= 1 && n <= 4) || (n >= 8 && n <= 11) || (n >= 16 && n <= 19);
}

[[gnu::always_inline]] constexpr bool is_float(Element e) { return static_cast<unsigned>(e) <= 4; }

[[gnu::always_inline]] constexpr bool is_signed_integer(Element e) {
  return static_cast<unsigned>(e) >= 8 && static_cast<unsigned>(e) <= 11;
}

[[gnu::always_inline]] constexpr std::size_t element_bytes(Element e) {
  const auto n = static_cast<unsigned>(e);
  if (n <= 2 || (n & 7) == 1) return 2;
  if (n == 3 || (n & 7) == 2) return 4;
  return (n == 4 || (n & 7) == 3) ? 8 : 1;
}

}  // namespace quern::kernels
