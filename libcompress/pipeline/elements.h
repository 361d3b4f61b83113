// What the bits of an element mean: validity, order, value. One traits class a type; `with_element` picks it. Host and
// device code use them alike.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include <quern/dtype.h>

namespace quern {

template <class Bits_, unsigned kExponentBits>
struct FloatElement {
  using Bits = Bits_;
  using Key = std::make_signed_t<Bits>;
  static constexpr unsigned kBits = sizeof(Bits) * 8;
  static constexpr unsigned kFractionBits = kBits - 1 - kExponentBits;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (kBits - 1));
  static constexpr Bits kInfinity = static_cast<Bits>(((Bits{1} << kExponentBits) - 1) << kFractionBits);

  static constexpr bool finite(Bits bits) { return static_cast<Bits>(bits & ~kSign) < kInfinity; }
  /// Signed integer in the order of the values; -0 comes right before 0.
  static constexpr Key key(Bits bits) {
    const Key k = static_cast<Key>(bits);
    return static_cast<Key>(k ^ static_cast<Key>((k >> (kBits - 1)) & static_cast<Key>(static_cast<Bits>(~kSign))));
  }
  static constexpr Bits from_key(Key k) { return static_cast<Bits>(key(static_cast<Bits>(k))); }
  /// By value: zeros of both signs are equal.
  static constexpr bool same(Bits a, Bits b) {
    return static_cast<bool>(static_cast<int>(a == b) | static_cast<int>(static_cast<Bits>((a | b) & ~kSign) == 0));
  }
  static constexpr double value(Bits bits) {
    if constexpr (sizeof(Bits) == 8) {
      return std::bit_cast<double>(bits);
    } else if constexpr (sizeof(Bits) == 4) {
      return static_cast<double>(std::bit_cast<float>(bits));
    } else if constexpr (kExponentBits == 8) {
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
    } else {
      const std::uint32_t exponent = (bits & ~kSign) >> kFractionBits;
      const std::uint32_t fraction = bits & ((1u << kFractionBits) - 1);
      // A whole number times a power of two, 2^-24 where the exponent is 0 or 1.
      const std::uint32_t digits = exponent == 0 ? fraction : fraction | 1u << kFractionBits;
      const std::uint64_t power = 1023 - 24 + (exponent == 0 ? 0 : exponent - 1);
      const double magnitude = digits * std::bit_cast<double>(power << 52);
      return (bits & kSign) != 0 ? -magnitude : magnitude;
    }
  }
};

template <class Int>
struct IntegerElement {
  using Bits = std::make_unsigned_t<Int>;
  using Key = Int;
  static constexpr bool finite(Bits) { return true; }
  static constexpr Key key(Bits bits) { return static_cast<Int>(bits); }
  static constexpr Bits from_key(Key k) { return static_cast<Bits>(k); }
  static constexpr bool same(Bits a, Bits b) { return a == b; }
  static constexpr double value(Bits bits) { return static_cast<double>(static_cast<Int>(bits)); }
};

/// Calls `f(Element{})` with the traits of a type.
template <class F>
constexpr auto with_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f16: return f(FloatElement<std::uint16_t, 5>{});
    case DType::bf16: return f(FloatElement<std::uint16_t, 8>{});
    case DType::f32: return f(FloatElement<std::uint32_t, 8>{});
    case DType::f64: return f(FloatElement<std::uint64_t, 11>{});
    case DType::i8: return f(IntegerElement<std::int8_t>{});
    case DType::i16: return f(IntegerElement<std::int16_t>{});
    case DType::i32: return f(IntegerElement<std::int32_t>{});
    case DType::i64: return f(IntegerElement<std::int64_t>{});
    case DType::u8: return f(IntegerElement<std::uint8_t>{});
    case DType::u16: return f(IntegerElement<std::uint16_t>{});
    case DType::u32: return f(IntegerElement<std::uint32_t>{});
    case DType::u64: break;
  }
  return f(IntegerElement<std::uint64_t>{});
}

/// Element `i` of memory that is aligned to anything.
template <class Element>
typename Element::Bits load_bits(const std::uint8_t* data, std::uint64_t i) {
  typename Element::Bits bits;
  std::memcpy(&bits, data + i * sizeof(bits), sizeof(bits));
  return bits;
}

/// Finite and not a declared fill value.
template <class Element>
bool is_valid(typename Element::Bits bits, std::span<const std::uint64_t> fill_bits) {
  if (!Element::finite(bits)) return false;
  for (const std::uint64_t fill : fill_bits)
    if (Element::same(bits, static_cast<typename Element::Bits>(fill))) return false;
  return true;
}

}  // namespace quern
