// What an element of each type is worth: bits in, binary64 out. The judge's own conversions, shared with no encoder.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <quern/dtype.h>

namespace quern::metrics {

struct F16 {
  using Bits = std::uint16_t;
  static constexpr bool kFloat = true;
  static constexpr Bits kSign = 0x8000;
  /// Exact; without branches, so that loops over it vectorize.
  static double value(Bits bits) {
    const std::uint32_t magnitude = bits & 0x7fffu;
    const float denormal = static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f;
    const std::uint32_t normal = (magnitude << 13) + 0x38000000u;
    const std::uint32_t nonfinite = (magnitude << 13) | 0x7f800000u;
    std::uint32_t out = magnitude < 0x0400u ? std::bit_cast<std::uint32_t>(denormal) : normal;
    out = magnitude >= 0x7c00u ? nonfinite : out;
    return static_cast<double>(std::bit_cast<float>(out | (static_cast<std::uint32_t>(bits & kSign) << 16)));
  }
};

struct Bf16 {
  using Bits = std::uint16_t;
  static constexpr bool kFloat = true;
  static constexpr Bits kSign = 0x8000;
  static double value(Bits bits) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
  }
};

struct F32 {
  using Bits = std::uint32_t;
  static constexpr bool kFloat = true;
  static constexpr Bits kSign = UINT32_C(1) << 31;
  static double value(Bits bits) { return static_cast<double>(std::bit_cast<float>(bits)); }
};

struct F64 {
  using Bits = std::uint64_t;
  static constexpr bool kFloat = true;
  static constexpr Bits kSign = UINT64_C(1) << 63;
  static double value(Bits bits) { return std::bit_cast<double>(bits); }
};

template <class Int>
struct Integer {
  using Bits = std::make_unsigned_t<Int>;
  static constexpr bool kFloat = false;
  static Int integer(Bits bits) { return static_cast<Int>(bits); }
  /// Exact but for 64-bit types, which are rounded.
  static double value(Bits bits) { return static_cast<double>(integer(bits)); }
  /// |a - b|; fits, because the difference of two 64-bit integers is below 2^64.
  static std::uint64_t distance(Bits a, Bits b) {
    const auto wide_a = static_cast<std::uint64_t>(integer(a));
    const auto wide_b = static_cast<std::uint64_t>(integer(b));
    return integer(a) < integer(b) ? wide_b - wide_a : wide_a - wide_b;
  }
};

/// x - x' in binary64, rounded once.
template <class E>
double difference(typename E::Bits x, typename E::Bits y) {
  if constexpr (!E::kFloat && sizeof(typename E::Bits) == 8) {
    const auto distance = static_cast<double>(E::distance(x, y));
    return E::integer(x) < E::integer(y) ? -distance : distance;
  } else {
    return E::value(x) - E::value(y);
  }
}

/// Element `i` of memory that need not be aligned.
template <class Bits>
Bits load(const std::byte* data, std::uint64_t i) {
  Bits bits;
  std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
  return bits;
}

/// Whether -0.0 is among the first `n` elements of either array; without branches.
template <class E>
bool has_negative_zero(const std::byte* x, const std::byte* y, std::uint64_t n) {
  using Bits = typename E::Bits;
  // As wide as an element, so that the loop vectorizes without widening.
  Bits found = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const bool either = load<Bits>(x, i) == E::kSign || load<Bits>(y, i) == E::kSign;
    found = static_cast<Bits>(found | static_cast<Bits>(either));
  }
  return found != 0;
}

/// Steps between two floating-point values; -0 and +0 are the same step, infinity follows the largest finite value.
/// The largest number when either is NaN.
template <class E>
std::uint64_t ulp_distance(typename E::Bits x, typename E::Bits y) {
  if (std::isnan(E::value(x)) || std::isnan(E::value(y))) return std::numeric_limits<std::uint64_t>::max();
  using Bits = typename E::Bits;
  const Bits magnitude_x = x & static_cast<Bits>(~E::kSign);
  const Bits magnitude_y = y & static_cast<Bits>(~E::kSign);
  if ((x & E::kSign) != (y & E::kSign)) return std::uint64_t{magnitude_x} + magnitude_y;
  return magnitude_x < magnitude_y ? magnitude_y - magnitude_x : magnitude_x - magnitude_y;
}

template <class E>
struct Type {
  using Element = E;
};

/// Calls `f(Type<E>{})` for the element type that belongs to `dtype`.
template <class F>
auto visit_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f16: return f(Type<F16>{});
    case DType::bf16: return f(Type<Bf16>{});
    case DType::f32: return f(Type<F32>{});
    case DType::f64: return f(Type<F64>{});
    case DType::i8: return f(Type<Integer<std::int8_t>>{});
    case DType::i16: return f(Type<Integer<std::int16_t>>{});
    case DType::i32: return f(Type<Integer<std::int32_t>>{});
    case DType::i64: return f(Type<Integer<std::int64_t>>{});
    case DType::u8: return f(Type<Integer<std::uint8_t>>{});
    case DType::u16: return f(Type<Integer<std::uint16_t>>{});
    case DType::u32: return f(Type<Integer<std::uint32_t>>{});
    case DType::u64: break;
  }
  return f(Type<Integer<std::uint64_t>>{});
}

}  // namespace quern::metrics
