// Elements as numbers and back: what a value is, which bits a reconstruction gets, and whether they keep the bound.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <quern/dtype.h>

#include "kernels/core/bits.h"
#include "kernels/core/exact_difference.h"
#include "kernels/cpu/stencil.h"

namespace quern::codec::stencil {

/// Nearest integer, ties to even; |v| < 2^51.
inline double nearest(double v) {
  constexpr double kMagic = 0x1.8p52;
  return (v + kMagic) - kMagic;
}

/// The same as an integer: adding the constant puts it into the low bits.
inline std::int64_t nearest_integer(double v) {
  constexpr double kMagic = 0x1.8p52;
  return std::bit_cast<std::int64_t>(v + kMagic) - std::bit_cast<std::int64_t>(kMagic);
}

struct F64 {
  using Bits = std::uint64_t;
  static double value(Bits b) { return std::bit_cast<double>(b); }
  static Bits bits(double v) { return std::bit_cast<Bits>(v); }
};
struct F32 {
  using Bits = std::uint32_t;
  static double value(Bits b) { return static_cast<double>(std::bit_cast<float>(b)); }
  static Bits bits(double v) { return std::bit_cast<Bits>(static_cast<float>(v)); }
};
struct F16 {
  using Bits = std::uint16_t;
  static double value(Bits b) { return static_cast<double>(kernels::half_to_float(b)); }
  static Bits bits(double v) { return static_cast<Bits>(kernels::float_to_half(static_cast<float>(v))); }
};
struct Bf16 {
  using Bits = std::uint16_t;
  static double value(Bits b) { return static_cast<double>(kernels::bfloat_to_float(b)); }
  static Bits bits(double v) { return static_cast<Bits>(kernels::float_to_bfloat(static_cast<float>(v))); }
};
/// Integers of up to 32 bits: rounded to nearest, kept within the type.
template <class T>
struct Int {
  using Bits = std::make_unsigned_t<T>;
  static double value(Bits b) { return static_cast<double>(static_cast<T>(b)); }
  static Bits bits(double v) {
    constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double kHigh = static_cast<double>(std::numeric_limits<T>::max());
    const double inside = v > kLow ? (v < kHigh ? v : kHigh) : kLow;
    return static_cast<Bits>(static_cast<std::int64_t>(nearest(inside)));
  }
};

/// Calls f(Element{}) for a supported type.
template <class F>
auto with_element(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f64: return f(F64{});
    case DType::f16: return f(F16{});
    case DType::bf16: return f(Bf16{});
    case DType::i8: return f(Int<std::int8_t>{});
    case DType::i16: return f(Int<std::int16_t>{});
    case DType::i32: return f(Int<std::int32_t>{});
    case DType::u8: return f(Int<std::uint8_t>{});
    case DType::u16: return f(Int<std::uint16_t>{});
    case DType::u32: return f(Int<std::uint32_t>{});
    default: return f(F32{});
  }
}

/// True when `back` may stand for `bits` under `bound`: both finite, no further apart than the bound in real
/// arithmetic. A zero never becomes the zero of the other sign, and -0 nothing else.
template <class Element>
bool keeps_bound(typename Element::Bits bits, typename Element::Bits back, double bound) {
  const double x = Element::value(bits);
  const double r = Element::value(back);
  if (!(r - r == 0)) return false;
  if (x == 0 && bits != back && (r == 0 || std::bit_cast<std::uint64_t>(x) != 0)) return false;
  return kernels::within_bound(x, r, bound);
}

/// True for most runs of elements: all come back nearer than the bound by more than differences are rounded, and none
/// is a zero, which may have a sign to keep.
template <class Element>
bool clearly_kept(const kernels::StencilKernels& kernels, const double* originals, const double* values,
                  std::size_t count, double unit, double base, double bound) {
  const double strict = bound * (1 - 0x1p-50);
  if constexpr (std::is_same_v<Element, F32> || std::is_same_v<Element, F64>)
    return kernels.all_near(originals, values, count, unit, base, strict, std::is_same_v<Element, F32>);
  bool kept = true;
  for (std::size_t x = 0; x < count && kept; ++x)
    kept =
        std::fabs(originals[x] - Element::value(Element::bits(values[x] * unit + base))) < strict && originals[x] != 0;
  return kept;
}

}  // namespace quern::codec::stencil
