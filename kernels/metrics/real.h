// Questions about binary64 numbers, and exact steps in their exponent, that the standard library answers only at run
// time and only on the host.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

namespace quern::verifier {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr double magnitude(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & ~(UINT64_C(1) << 63));
}

constexpr bool is_finite(double x) { return (std::bit_cast<std::uint64_t>(x) << 1) < UINT64_C(0xffe0000000000000); }

/// A number as factor * 2^exponent, for what leaves the range of binary64.
struct Scaled {
  double factor = 0.0;
  int exponent = 0;
};

/// 1/2 <= |factor| < 1, as frexp; what is zero or not finite is its own factor.
constexpr Scaled split(double x) {
  constexpr std::uint64_t kExponent = UINT64_C(0x7ff) << 52;
  constexpr std::uint64_t kHalf = UINT64_C(1022) << 52;
  if (x == 0 || !is_finite(x)) return {x, 0};
  int shift = 0;
  if (magnitude(x) < 0x1p-1022) {
    x *= 0x1p54;
    shift = -54;
  }
  const auto bits = std::bit_cast<std::uint64_t>(x);
  return {std::bit_cast<double>((bits & ~kExponent) | kHalf),
          static_cast<int>((bits & kExponent) >> 52) - 1022 + shift};
}

/// x * 2^n rounded once, as ldexp.
constexpr double scale(double x, int n) {
  const Scaled parts = split(x);
  if (x == 0 || !is_finite(x)) return x;
  // Far outside of what binary64 holds, whatever the factor; the clamps also keep the sum below from overflowing.
  const int clamped = n < -4000 ? -4000 : n > 4000 ? 4000 : n;
  const int exponent = parts.exponent + clamped;
  if (exponent > 1024) return parts.factor * kInfinity;
  if (exponent < -1080) return parts.factor * 0.0;
  const auto bits = std::bit_cast<std::uint64_t>(parts.factor);
  const int normal = exponent < -1021 ? -1021 : exponent;
  const auto at_normal =
      std::bit_cast<double>(bits + (static_cast<std::uint64_t>(static_cast<std::int64_t>(normal)) << 52));
  // The one step that can round.
  return exponent == normal
             ? at_normal
             : at_normal * std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent - normal) << 52);
}

}  // namespace quern::verifier
