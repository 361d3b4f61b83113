// Values of all element types, and their differences.
#include "checkpoint/save/difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace quern::checkpoint {
namespace {

template <class Int>
Int load(const std::uint8_t* at) {
  Int value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

/// A small binary format: sign, exponent, fraction. `has_infinity` false: only all ones is NaN (E4M3).
double small_float(std::uint32_t bits, int exponent_bits, int fraction_bits, bool has_infinity) {
  const std::uint32_t fraction = bits & ((1U << fraction_bits) - 1);
  const int exponent = static_cast<int>(bits >> fraction_bits & ((1U << exponent_bits) - 1));
  const bool negative = (bits >> (exponent_bits + fraction_bits) & 1) != 0;
  const int top = (1 << exponent_bits) - 1, bias = (1 << (exponent_bits - 1)) - 1;
  double value = 0;
  if (exponent == top && has_infinity) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == top && fraction == (1U << fraction_bits) - 1) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(fraction), 1 - bias - fraction_bits);
  } else {
    value = std::ldexp(static_cast<double>(fraction | 1U << fraction_bits), exponent - bias - fraction_bits);
  }
  return negative ? -value : value;
}

/// The 8-bit formats whose only NaN is what would be -0, and which have no infinity.
double unsigned_zero_float(std::uint8_t bits, int exponent_bits, int fraction_bits) {
  if (bits == 0x80) return std::numeric_limits<double>::quiet_NaN();
  const int top = 1 << exponent_bits;  // beyond every exponent: none is special
  const int exponent = bits >> fraction_bits & (top - 1), fraction = bits & ((1 << fraction_bits) - 1);
  const int bias = 1 << (exponent_bits - 1);
  const int significand = exponent == 0 ? fraction : fraction | 1 << fraction_bits;
  const double value = std::ldexp(significand, std::max(exponent, 1) - bias - fraction_bits);
  return bits > 0x80 ? -value : value;
}

/// |a - b| of an element, of complex ones in the plane; nothing where a part of either is not finite.
std::optional<double> distance(ElementType type, const std::uint8_t* a, const std::uint8_t* b) {
  const ElementType part = codec::tensor::part_type(type);
  const std::size_t width = codec::tensor::element_bytes(part);
  double apart = 0;
  for (std::size_t at = 0; at < codec::tensor::element_bytes(type); at += width) {
    const double x = element_value(part, a + at), y = element_value(part, b + at);
    if (!std::isfinite(x) || !std::isfinite(y)) return std::nullopt;
    apart = at == 0 ? std::abs(x - y) : std::hypot(apart, x - y);
  }
  return apart;
}

}  // namespace

double element_value(ElementType type, const std::uint8_t* at) {
  switch (type) {
    case ElementType::f16: return small_float(load<std::uint16_t>(at), 5, 10, true);
    case ElementType::bf16: return std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(at)) << 16);
    case ElementType::f32: return load<float>(at);
    case ElementType::f64: return load<double>(at);
    case ElementType::f8_e4m3: return small_float(*at, 4, 3, false);
    case ElementType::f8_e5m2: return small_float(*at, 5, 2, true);
    case ElementType::i8: return load<std::int8_t>(at);
    case ElementType::i16: return load<std::int16_t>(at);
    case ElementType::i32: return load<std::int32_t>(at);
    case ElementType::i64: return static_cast<double>(load<std::int64_t>(at));
    case ElementType::u8:
    case ElementType::boolean: return *at;
    case ElementType::u16: return load<std::uint16_t>(at);
    case ElementType::u32: return load<std::uint32_t>(at);
    case ElementType::u64: return static_cast<double>(load<std::uint64_t>(at));
    case ElementType::f8_e4m3fnuz: return unsigned_zero_float(*at, 4, 3);
    case ElementType::f8_e5m2fnuz: return unsigned_zero_float(*at, 5, 2);
    case ElementType::f8_e8m0: return *at == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1., *at - 127);
    case ElementType::c64:
    case ElementType::c128: return std::numeric_limits<double>::quiet_NaN();  // no real number
  }
  return 0;
}

Difference difference(ElementType type, std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
  Difference out;
  const std::size_t width = codec::tensor::element_bytes(type);
  for (std::size_t i = 0; i + width <= a.size() && i + width <= b.size(); i += width) {
    if (std::memcmp(a.data() + i, b.data() + i, width) == 0) continue;
    ++out.differing;
    if (const auto apart = distance(type, a.data() + i, b.data() + i)) {
      out.max_error = std::max(out.max_error, *apart);
    } else {
      ++out.not_comparable;
    }
  }
  return out;
}

}  // namespace quern::checkpoint
