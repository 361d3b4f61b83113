// Conversions between bit patterns of element types; 16-bit floats are done by hand.
#include "libcompress/io/number.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace quern::io {
namespace {

struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
};
constexpr SmallFloat kHalf{5, 10};
constexpr SmallFloat kBrain{8, 7};

double decode_small(std::uint64_t bits, SmallFloat format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<int>(bits & ((UINT64_C(1) << format.mantissa_bits) - 1));
  const auto exponent = static_cast<int>(bits >> format.mantissa_bits) & ((1 << format.exponent_bits) - 1);
  const double sign = (bits >> 15 & 1) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << format.exponent_bits) - 1)
    return mantissa != 0 ? std::copysign(std::numeric_limits<double>::quiet_NaN(), sign)
                         : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - format.mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << format.mantissa_bits), exponent - bias - format.mantissa_bits);
}

std::uint64_t encode_small(double value, SmallFloat format) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint64_t sign = std::signbit(value) ? UINT64_C(0x8000) : 0;
  const std::uint64_t infinity = ((UINT64_C(1) << format.exponent_bits) - 1) << format.mantissa_bits;
  if (std::isnan(value)) return sign | infinity | UINT64_C(1) << (format.mantissa_bits - 1);
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | infinity;
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  if (exponent > bias) return sign | infinity;
  // The leading one of a normal value adds one to the exponent field, and so does a mantissa that rounds up to the next
  // power of two; a subnormal has no leading one and keeps field 0.
  const auto rounded =
      static_cast<std::uint64_t>(std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent)));
  return sign | ((static_cast<std::uint64_t>(exponent - (1 - bias)) << format.mantissa_bits) + rounded);
}

std::int64_t sign_extended(std::uint64_t bits, DType dtype) {
  const unsigned shift = 64 - 8 * static_cast<unsigned>(dtype_bytes(dtype));
  return static_cast<std::int64_t>(bits << shift) >> shift;
}

std::uint64_t low_bytes(std::uint64_t bits, DType dtype) {
  const unsigned shift = 64 - 8 * static_cast<unsigned>(dtype_bytes(dtype));
  return bits << shift >> shift;
}

std::optional<std::uint64_t> integer_from_double(double value, DType to) {
  const int width = 8 * static_cast<int>(dtype_bytes(to));
  const bool is_signed = is_signed_integer(to);
  const double low = is_signed ? -std::ldexp(1.0, width - 1) : 0.0;
  const double above = std::ldexp(1.0, is_signed ? width - 1 : width);
  if (!(value >= low && value < above) || value != std::trunc(value)) return std::nullopt;
  const std::uint64_t raw =
      is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value)) : static_cast<std::uint64_t>(value);
  return low_bytes(raw, to);
}

std::optional<std::uint64_t> integer_from_integer(std::uint64_t bits, DType from, DType to) {
  const bool negative = is_signed_integer(from) && sign_extended(bits, from) < 0;
  const std::uint64_t wide = negative ? static_cast<std::uint64_t>(sign_extended(bits, from)) : bits;
  if (negative && !is_signed_integer(to)) return std::nullopt;
  const std::uint64_t low = low_bytes(wide, to);
  const std::uint64_t back = is_signed_integer(to) ? static_cast<std::uint64_t>(sign_extended(low, to)) : low;
  const bool turned_negative = is_signed_integer(to) && !negative && sign_extended(low, to) < 0;
  if (back != wide || turned_negative) return std::nullopt;
  return low;
}

}  // namespace

std::uint64_t load_bits(const void* data, DType dtype) {
  std::uint8_t b1 = 0;
  std::uint16_t b2 = 0;
  std::uint32_t b4 = 0;
  std::uint64_t b8 = 0;
  switch (dtype_bytes(dtype)) {
    case 1: std::memcpy(&b1, data, 1); return b1;
    case 2: std::memcpy(&b2, data, 2); return b2;
    case 4: std::memcpy(&b4, data, 4); return b4;
    default: std::memcpy(&b8, data, 8); return b8;
  }
}

void store_bits(void* data, std::uint64_t bits, DType dtype) {
  const auto b1 = static_cast<std::uint8_t>(bits);
  const auto b2 = static_cast<std::uint16_t>(bits);
  const auto b4 = static_cast<std::uint32_t>(bits);
  switch (dtype_bytes(dtype)) {
    case 1: std::memcpy(data, &b1, 1); break;
    case 2: std::memcpy(data, &b2, 2); break;
    case 4: std::memcpy(data, &b4, 4); break;
    default: std::memcpy(data, &bits, 8); break;
  }
}

double bits_to_double(std::uint64_t bits, DType dtype) {
  switch (dtype) {
    case DType::f16: return decode_small(bits, kHalf);
    case DType::bf16: return decode_small(bits, kBrain);
    case DType::f32: return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case DType::f64: return std::bit_cast<double>(bits);
    default:
      return is_signed_integer(dtype) ? static_cast<double>(sign_extended(bits, dtype)) : static_cast<double>(bits);
  }
}

std::uint64_t double_to_float_bits(double value, DType dtype) {
  switch (dtype) {
    case DType::f16: return encode_small(value, kHalf);
    case DType::bf16: return encode_small(value, kBrain);
    case DType::f32: return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    default: return std::bit_cast<std::uint64_t>(value);
  }
}

std::optional<std::uint64_t> convert_bits(std::uint64_t bits, DType from, DType to) {
  if (from == to) return bits;
  if (is_integer(from) && is_integer(to)) return integer_from_integer(bits, from, to);
  const double value = bits_to_double(bits, from);
  if (is_integer(to)) return integer_from_double(value, to);
  const std::uint64_t out = double_to_float_bits(value, to);
  if (std::isfinite(value) && is_special(out, to)) return std::nullopt;
  return out;
}

bool is_special(std::uint64_t bits, DType dtype) {
  return is_float(dtype) && !std::isfinite(bits_to_double(bits, dtype));
}

}  // namespace quern::io
