// Values are rounded once: F32 is exact for all the narrower types, and F64 goes to them without it in between.
#include "checkpoint/export/cast.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/common/bit_packing.h"
#include "kernels/common/bits.h"

namespace quern::checkpoint {
namespace {

/// A 16-bit pattern with so many bits of fraction.
std::uint16_t round_to_16(double value, int fraction_bits) {
  const int exponent_bits = 15 - fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const std::uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const std::uint32_t infinity = ((1U << exponent_bits) - 1) << fraction_bits;
  if (std::isnan(value)) {
    const auto payload = std::bit_cast<std::uint64_t>(value) << 12 >> (64 - fraction_bits);
    return static_cast<std::uint16_t>(sign | infinity | 1U << (fraction_bits - 1) | payload);
  }
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  if (value == 0) return static_cast<std::uint16_t>(sign);
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  // In units of the last place: an exact product, hence rounded once.
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(std::abs(value), fraction_bits - exponent)));
  if (exponent > bias) return static_cast<std::uint16_t>(sign | infinity);
  const std::uint32_t bits = (static_cast<std::uint32_t>(exponent + bias - 1) << fraction_bits) + units;
  return static_cast<std::uint16_t>(sign | std::min(bits, infinity));
}

float load_f32(const std::uint8_t* at) { return std::bit_cast<float>(kernels::load_le<std::uint32_t>(at)); }
float load_f16(const std::uint8_t* at) { return kernels::half_to_float(kernels::load_le<std::uint16_t>(at)); }
float load_bf16(const std::uint8_t* at) { return kernels::bfloat_to_float(kernels::load_le<std::uint16_t>(at)); }
double load_f64(const std::uint8_t* at) { return std::bit_cast<double>(kernels::load_le<std::uint64_t>(at)); }

std::uint32_t to_f32(double value) { return std::bit_cast<std::uint32_t>(static_cast<float>(value)); }
std::uint16_t to_f16(float value) { return static_cast<std::uint16_t>(kernels::float_to_half(value)); }
std::uint16_t to_f16(double value) { return round_to_16(value, 10); }
std::uint16_t to_bf16(float value) { return static_cast<std::uint16_t>(kernels::float_to_bfloat(value)); }
std::uint16_t to_bf16(double value) { return round_to_16(value, 7); }

/// Rounds every element; `infinity` is that of the type rounded to.
template <auto Load, class Round, class Bits>
std::uint64_t cast_all(std::span<const std::uint8_t> from, std::size_t width, const Round& round, Bits infinity,
                       std::uint8_t* out) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  std::uint64_t overflows = 0;
  for (std::size_t at = 0; at + width <= from.size(); at += width, out += sizeof(Bits)) {
    const auto value = Load(from.data() + at);
    const Bits bits = round(value);
    overflows += (bits & kMagnitude) == infinity && std::isfinite(value) ? 1U : 0U;
    kernels::store_le(out, bits);
  }
  return overflows;
}

template <auto Load>
std::uint64_t cast_from(std::span<const std::uint8_t> from, std::size_t width, ElementType to, std::uint8_t* out) {
  if (to == ElementType::f16)
    return cast_all<Load>(
        from, width, [](auto value) { return to_f16(value); }, std::uint16_t{0x7C00}, out);
  if (to == ElementType::bf16)
    return cast_all<Load>(
        from, width, [](auto value) { return to_bf16(value); }, std::uint16_t{0x7F80}, out);
  return cast_all<Load>(
      from, width, [](auto value) { return to_f32(value); }, std::uint32_t{0x7F800000}, out);
}

}  // namespace

bool can_cast(ElementType type) {
  return type == ElementType::f64 || type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16;
}

std::uint64_t cast(ElementType type, std::span<const std::uint8_t> from, ElementType to, std::span<std::uint8_t> out) {
  const std::size_t width = codec::tensor::element_bytes(type);
  switch (type) {
    case ElementType::f64: return cast_from<load_f64>(from, width, to, out.data());
    case ElementType::f16: return cast_from<load_f16>(from, width, to, out.data());
    case ElementType::bf16: return cast_from<load_bf16>(from, width, to, out.data());
    default: return cast_from<load_f32>(from, width, to, out.data());
  }
}

}  // namespace quern::checkpoint
