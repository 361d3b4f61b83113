// What a reconstructed number becomes in each element type of a codec that reconstructs real numbers, and what an
// element's number is.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/bits.h"
#include "kernels/common/element_type.h"
#include "kernels/common/exact_difference.h"
#include "kernels/common/round_to_integer.h"

namespace quern::kernels {

struct F64 {
  using Bits = std::uint64_t;
  static constexpr double value(Bits b) { return std::bit_cast<double>(b); }
  static constexpr Bits bits(double v) { return std::bit_cast<Bits>(v); }
};
struct F32 {
  using Bits = std::uint32_t;
  static constexpr double value(Bits b) { return static_cast<double>(std::bit_cast<float>(b)); }
  static constexpr Bits bits(double v) { return std::bit_cast<Bits>(static_cast<float>(v)); }
};
struct F16 {
  using Bits = std::uint16_t;
  static constexpr double value(Bits b) { return static_cast<double>(half_to_float(b)); }
  static constexpr Bits bits(double v) { return static_cast<Bits>(float_to_half(static_cast<float>(v))); }
};
struct Bf16 {
  using Bits = std::uint16_t;
  static constexpr double value(Bits b) { return static_cast<double>(bfloat_to_float(b)); }
  static constexpr Bits bits(double v) { return static_cast<Bits>(float_to_bfloat(static_cast<float>(v))); }
};
/// Integers of up to 32 bits: rounded to nearest, kept within the type.
template <class T>
struct Int {
  using Bits = std::make_unsigned_t<T>;
  static constexpr double value(Bits b) { return static_cast<double>(static_cast<T>(b)); }
  static constexpr Bits bits(double v) {
    constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double kHigh = static_cast<double>(std::numeric_limits<T>::max());
    const double inside = v > kLow ? (v < kHigh ? v : kHigh) : kLow;
    return static_cast<Bits>(static_cast<std::int64_t>(nearest(inside)));
  }
};

/// Calls f(T{}) for the one of the types above that an element type is; f32 for 64-bit integers, which no such codec takes.
template <class F>
constexpr auto with_number_element(Element element, F&& f) {
  switch (element) {
    case Element::f64: return f(F64{});
    case Element::f16: return f(F16{});
    case Element::bf16: return f(Bf16{});
    case Element::i8: return f(Int<std::int8_t>{});
    case Element::i16: return f(Int<std::int16_t>{});
    case Element::i32: return f(Int<std::int32_t>{});
    case Element::u8: return f(Int<std::uint8_t>{});
    case Element::u16: return f(Int<std::uint16_t>{});
    case Element::u32: return f(Int<std::uint32_t>{});
    default: return f(F32{});
  }
}

/// True when `back` may stand for `bits` under `bound`: both finite, no further apart than the bound in real
/// arithmetic. A zero never becomes the zero of the other sign, and -0 nothing else.
template <class Element>
constexpr bool keeps_bound(typename Element::Bits bits, typename Element::Bits back, double bound) {
  const double x = Element::value(bits);
  const double r = Element::value(back);
  if (!(r - r == 0)) return false;
  if (x == 0 && bits != back && (r == 0 || std::bit_cast<std::uint64_t>(x) != 0)) return false;
  return within_bound(x, r, bound);
}

}  // namespace quern::kernels
