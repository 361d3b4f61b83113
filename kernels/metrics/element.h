// What an element of each type is worth: bits in, binary64 out. The verifier's own conversions, shared with no encoder.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/common/element_type.h"

namespace quern::verifier {

struct F16 {
  using Bits = std::uint16_t;
  /// Holds every value, and compares fast: the narrower of binary32 and binary64.
  using Working = float;
  static constexpr bool kFloat = true;
  static constexpr Bits kSign = 0x8000;
  static constexpr Bits kInfinity = 0x7c00;
  /// Exact; without branches, so that loops over it vectorize.
  static constexpr float working(Bits bits) {
    const std::uint32_t magnitude = bits & 0x7fffu;
    const float denormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f;
    const std::uint32_t normal = (magnitude << 13) + 0x38000000u;
    const std::uint32_t nonfinite = (magnitude << 13) | 0x7f800000u;
    std::uint32_t out = magnitude < 0x0400u ? std::bit_cast<std::uint32_t>(denormal) : normal;
    out = magnitude >= 0x7c00u ? nonfinite : out;
    return std::bit_cast<float>(out | (static_cast<std::uint32_t>(bits & kSign) << 16));
  }
  static constexpr double value(Bits bits) { return static_cast<double>(working(bits)); }
};

struct Bf16 {
  using Bits = std::uint16_t;
  using Working = float;
  static constexpr bool kFloat = true;
  static constexpr Bits kSign = 0x8000;
  static constexpr Bits kInfinity = 0x7f80;
  static constexpr float working(Bits bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  static constexpr double value(Bits bits) { return static_cast<double>(working(bits)); }
};

struct F32 {
  using Bits = std::uint32_t;
  using Working = float;
  static constexpr bool kFloat = true;
  static constexpr Bits kSign = UINT32_C(1) << 31;
  static constexpr Bits kInfinity = UINT32_C(0x7f800000);
  static constexpr float working(Bits bits) { return std::bit_cast<float>(bits); }
  static constexpr double value(Bits bits) { return static_cast<double>(working(bits)); }
};

struct F64 {
  using Bits = std::uint64_t;
  using Working = double;
  static constexpr bool kFloat = true;
  static constexpr Bits kSign = UINT64_C(1) << 63;
  static constexpr Bits kInfinity = UINT64_C(0x7ff0000000000000);
  static constexpr double working(Bits bits) { return std::bit_cast<double>(bits); }
  static constexpr double value(Bits bits) { return working(bits); }
};

template <class Int>
struct Integer {
  using Bits = std::make_unsigned_t<Int>;
  using Working = Int;
  static constexpr bool kFloat = false;
  static constexpr Working working(Bits bits) { return integer(bits); }
  static constexpr Int integer(Bits bits) { return static_cast<Int>(bits); }
  /// Exact but for 64-bit types, which are rounded.
  static constexpr double value(Bits bits) { return static_cast<double>(integer(bits)); }
  /// Holds |a - b|: the difference of two 64-bit integers is below 2^64, that of narrower ones below 2^32.
  using Distance = std::conditional_t<sizeof(Int) == 8, std::uint64_t, std::uint32_t>;
  static constexpr Distance distance(Bits a, Bits b) {
    const auto wide_a = static_cast<Distance>(static_cast<std::int64_t>(integer(a)));
    const auto wide_b = static_cast<Distance>(static_cast<std::int64_t>(integer(b)));
    return integer(a) < integer(b) ? wide_b - wide_a : wide_a - wide_b;
  }
};

/// x - x' in binary64, rounded once.
template <class E>
constexpr double difference(typename E::Bits x, typename E::Bits y) {
  if constexpr (!E::kFloat && sizeof(typename E::Bits) == 8) {
    const auto distance = static_cast<double>(E::distance(x, y));
    return E::integer(x) < E::integer(y) ? -distance : distance;
  } else {
    return E::value(x) - E::value(y);
  }
}

/// Steps between two floating-point values; -0 and +0 are the same step, infinity follows the largest finite value.
/// The largest number when either is NaN.
template <class E>
constexpr std::uint64_t ulp_distance(typename E::Bits x, typename E::Bits y) {
  using Bits = typename E::Bits;
  const Bits magnitude_x = x & static_cast<Bits>(~E::kSign);
  const Bits magnitude_y = y & static_cast<Bits>(~E::kSign);
  if (magnitude_x > E::kInfinity || magnitude_y > E::kInfinity) return std::numeric_limits<std::uint64_t>::max();
  if ((x & E::kSign) != (y & E::kSign)) return std::uint64_t{magnitude_x} + magnitude_y;
  return magnitude_x < magnitude_y ? magnitude_y - magnitude_x : magnitude_x - magnitude_y;
}

template <class E>
struct Type {
  using Element = E;
};

/// Calls `f(Type<E>{})` for the element type.
template <class F>
constexpr auto visit_element(kernels::Element element, F&& f) {
  switch (element) {
    case kernels::Element::f16: return f(Type<F16>{});
    case kernels::Element::bf16: return f(Type<Bf16>{});
    case kernels::Element::f32: return f(Type<F32>{});
    case kernels::Element::f64: return f(Type<F64>{});
    case kernels::Element::i8: return f(Type<Integer<std::int8_t>>{});
    case kernels::Element::i16: return f(Type<Integer<std::int16_t>>{});
    case kernels::Element::i32: return f(Type<Integer<std::int32_t>>{});
    case kernels::Element::i64: return f(Type<Integer<std::int64_t>>{});
    case kernels::Element::u8: return f(Type<Integer<std::uint8_t>>{});
    case kernels::Element::u16: return f(Type<Integer<std::uint16_t>>{});
    case kernels::Element::u32: return f(Type<Integer<std::uint32_t>>{});
    case kernels::Element::u64: break;
  }
  return f(Type<Integer<std::uint64_t>>{});
}

}  // namespace quern::verifier
