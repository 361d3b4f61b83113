// Rounding to the 16-bit types is done on exact binary64 values, so that nothing is rounded twice.
#include "checkpoint/export/cast.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "checkpoint/difference.h"

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

/// binary32 to bf16 on the bits alone.
std::uint16_t to_bf16(std::uint32_t bits) {
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

template <class Word>
void put(std::span<std::uint8_t> out, std::size_t index, Word word) {
  std::memcpy(out.data() + index * sizeof(word), &word, sizeof(word));
}

}  // namespace

bool can_cast(ElementType type) {
  return type == ElementType::f64 || type == ElementType::f32 || type == ElementType::f16 || type == ElementType::bf16;
}

std::uint64_t cast(ElementType type, std::span<const std::uint8_t> from, ElementType to, std::span<std::uint8_t> out) {
  const std::size_t width = codec::tensor::element_bytes(type), count = from.size() / width;
  std::uint64_t overflows = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* const at = from.data() + i * width;
    if (to == ElementType::bf16 && type == ElementType::f32) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, at, 4);
      const std::uint16_t rounded = to_bf16(bits);
      if ((rounded & 0x7FFF) == 0x7F80 && (bits & 0x7FFFFFFF) < 0x7F800000) ++overflows;
      put(out, i, rounded);
      continue;
    }
    const double value = element_value(type, at);
    bool infinite = false;
    if (to == ElementType::f32) {
      const auto rounded = static_cast<float>(value);
      infinite = std::isinf(rounded);
      put(out, i, std::bit_cast<std::uint32_t>(rounded));
    } else {
      const int fraction_bits = to == ElementType::bf16 ? 7 : 10;
      const std::uint16_t rounded = round_to_16(value, fraction_bits);
      infinite = (rounded & 0x7FFF) == (0x7FFF >> fraction_bits << fraction_bits);
      put(out, i, rounded);
    }
    if (infinite && std::isfinite(value)) ++overflows;
  }
  return overflows;
}

}  // namespace quern::checkpoint
