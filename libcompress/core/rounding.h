// Arithmetic that never errs upwards (or downwards), and the neighbours of floating-point numbers: comparisons, bits
// and separately rounded operations alone, so that host and device code get the same numbers from the same functions.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace quern {

template <class F>
constexpr bool is_finite(F x) {
  return -std::numeric_limits<F>::max() <= x && x <= std::numeric_limits<F>::max();
}

/// The number of type F before a positive one.
template <class F>
constexpr F next_toward_zero(F x) {
  using Bits = std::conditional_t<sizeof(F) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<F>(static_cast<Bits>(std::bit_cast<Bits>(x) - 1));
}
/// The next number below; -infinity and NaN stay.
constexpr double next_down(double x) {
  if (x > 0) return next_toward_zero(x);
  if (x == 0) return -std::numeric_limits<double>::denorm_min();
  if (!(x > -std::numeric_limits<double>::infinity())) return x;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) + 1);
}
/// The next number above; infinity and NaN stay.
constexpr double next_up(double x) { return -next_down(-x); }

/// max - min of finite numbers, max >= min, rounded down; the largest finite number when it overflows.
constexpr double difference_down(double max, double min) {
  const double s = max - min;
  if (s > std::numeric_limits<double>::max()) return std::numeric_limits<double>::max();
  // Error-free sum of max and -min (Knuth 1969, TAOCP 2, 4.2.2): s + e is the exact difference.
  const double b = s - max;
  const double e = (max - (s - b)) + (-min - b);
  return e < 0 ? next_down(s) : s;
}

/// A positive finite number as digits * 2^exponent.
struct BinaryDigits {
  std::uint64_t digits = 0;
  int exponent = 0;
};
constexpr BinaryDigits binary_digits(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> 52);
  const std::uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
  return exponent == 0 ? BinaryDigits{fraction, -1074} : BinaryDigits{fraction | UINT64_C(1) << 52, exponent - 1075};
}

/// Product of finite numbers >= 0, rounded down.
constexpr double product_down(double a, double b) {
  constexpr double kExactFloor = 0x1p-900;
  const double p = a * b;
  if (p > std::numeric_limits<double>::max()) return std::numeric_limits<double>::max();
  if (p == 0) return 0;
  if (p < kExactFloor) return next_toward_zero(p);  // one step down is always enough
  // The exact product and p as integers of the same unit. They differ by less than 2^53, so that the lowest 64 bits of
  // their difference are the whole of it. Where p has the finer unit, it is exact.
  const BinaryDigits x = binary_digits(a), y = binary_digits(b), z = binary_digits(p);
  const int shift = z.exponent - x.exponent - y.exponent;
  if (shift <= 0) return p;
  const std::uint64_t rest = x.digits * y.digits - (z.digits << shift);
  return static_cast<std::int64_t>(rest) < 0 ? next_toward_zero(p) : p;
}

/// The largest binary64 number that is not above an integer of 64 bits.
template <class Int>
constexpr double integer_down(Int v) {
  static_assert(sizeof(Int) == 8);
  constexpr double kEnd = std::is_signed_v<Int> ? 0x1p63 : 0x1p64;
  const double d = static_cast<double>(v);  // rounded to nearest, at most to kEnd
  return d >= kEnd || static_cast<Int>(d) > v ? next_down(d) : d;
}
/// The smallest that is not below it.
template <class Int>
constexpr double integer_up(Int v) {
  static_assert(sizeof(Int) == 8);
  constexpr double kEnd = std::is_signed_v<Int> ? 0x1p63 : 0x1p64;
  const double d = static_cast<double>(v);
  return d < kEnd && static_cast<Int>(d) < v ? next_up(d) : d;
}

}  // namespace quern
