// What the bits of an element mean to whoever looks for a range: finite or not, the order of values as integers, value.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "kernels/common/element_type.h"

namespace quern::kernels {

template <class Bits_, unsigned kExponentBits>
struct FloatElement {
  using Bits = Bits_;
  using Key = std::make_signed_t<Bits>;
  static constexpr unsigned kBits = sizeof(Bits) * 8;
  static constexpr unsigned kFractionBits = kBits - 1 - kExponentBits;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (kBits - 1));
  static constexpr Bits kInfinity = static_cast<Bits>(((Bits{1} << kExponentBits) - 1) << kFractionBits);

  [[gnu::always_inline]] static constexpr bool finite(Bits bits) {
    return static_cast<Bits>(bits & ~kSign) < kInfinity;
  }
  /// Signed integer in the order of the values; -0 comes right before 0.
  [[gnu::always_inline]] static constexpr Key key(Bits bits) {
    const Key k = static_cast<Key>(bits);
    return static_cast<Key>(k ^ static_cast<Key>((k >> (kBits - 1)) & static_cast<Key>(static_cast<Bits>(~kSign))));
  }
  [[gnu::always_inline]] static constexpr Bits from_key(Key k) { return static_cast<Bits>(key(static_cast<Bits>(k))); }
  /// By value: zeros of both signs are equal.
  [[gnu::always_inline]] static constexpr bool same(Bits a, Bits b) {
    return static_cast<bool>(static_cast<int>(a == b) | static_cast<int>(static_cast<Bits>((a | b) & ~kSign) == 0));
  }
  [[gnu::always_inline]] static constexpr double value(Bits bits) {
    if constexpr (sizeof(Bits) == 8) {
      return std::bit_cast<double>(bits);
    } else if constexpr (sizeof(Bits) == 4) {
      return static_cast<double>(std::bit_cast<float>(bits));
    } else if constexpr (kExponentBits == 8) {
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
    } else {
      const int exponent = (bits & ~kSign) >> kFractionBits;
      const int fraction = bits & ((1 << kFractionBits) - 1);
      const auto normal = static_cast<std::uint64_t>(exponent + 1008) << 52 | static_cast<std::uint64_t>(fraction)
                                                                                  << 42;
      const double magnitude = exponent == 0 ? fraction * 0x1p-24 : std::bit_cast<double>(normal);
      return (bits & kSign) != 0 ? -magnitude : magnitude;
    }
  }
};

template <class Int>
struct IntegerElement {
  using Bits = std::make_unsigned_t<Int>;
  using Key = Int;
  [[gnu::always_inline]] static constexpr bool finite(Bits) { return true; }
  [[gnu::always_inline]] static constexpr Key key(Bits bits) { return static_cast<Int>(bits); }
  [[gnu::always_inline]] static constexpr Bits from_key(Key k) { return static_cast<Bits>(k); }
  [[gnu::always_inline]] static constexpr bool same(Bits a, Bits b) { return a == b; }
  [[gnu::always_inline]] static constexpr double value(Bits bits) {
    return static_cast<double>(static_cast<Int>(bits));
  }
};

/// Calls `f(Traits{})` with the traits of a type.
template <class F>
[[gnu::always_inline]] constexpr auto with_element(Element element, F&& f) {
  switch (element) {
    case Element::f16: return f(FloatElement<std::uint16_t, 5>{});
    case Element::bf16: return f(FloatElement<std::uint16_t, 8>{});
    case Element::f32: return f(FloatElement<std::uint32_t, 8>{});
    case Element::f64: return f(FloatElement<std::uint64_t, 11>{});
    case Element::i8: return f(IntegerElement<std::int8_t>{});
    case Element::i16: return f(IntegerElement<std::int16_t>{});
    case Element::i32: return f(IntegerElement<std::int32_t>{});
    case Element::i64: return f(IntegerElement<std::int64_t>{});
    case Element::u8: return f(IntegerElement<std::uint8_t>{});
    case Element::u16: return f(IntegerElement<std::uint16_t>{});
    case Element::u32: return f(IntegerElement<std::uint32_t>{});
    case Element::u64: break;
  }
  return f(IntegerElement<std::uint64_t>{});
}

}  // namespace quern::kernels
