// Logarithm, power and error function from additions and multiplications alone, so that every machine gets the same
// bits, and the half-octave scale that all histograms share.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace quern::surrogate {

/// log2(x) for x > 0 to about 1e-9; -1074 for 0 and below. By the series of artanh in (m - 1) / (m + 1).
constexpr double log2_of(double x) {
  if (!(x > 0)) return -1074;
  int exponent = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    exponent = -54;
  }
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1023) << 52);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double t = (m - 1) / (m + 1);
  const double s = t * t;
  const double series =
      1 + s * (1.0 / 3 + s * (1.0 / 5 + s * (1.0 / 7 + s * (1.0 / 9 + s * (1.0 / 11 + s * (1.0 / 13))))));
  return exponent + 2.8853900817779268 * t * series;
}

/// 2^x, x within [-1000, 1000] or put there, to about 1e-9.
constexpr double exp2_of(double x) {
  x = std::clamp(x, -1000.0, 1000.0);
  int whole = static_cast<int>(x);
  if (whole > x) --whole;
  const double y = (x - whole) * 0.69314718055994531;
  double term = 1;
  double sum = 1;
  for (int i = 1; i < 14; ++i) {
    term *= y / i;
    sum += term;
  }
  return sum * std::bit_cast<double>(static_cast<std::uint64_t>(whole + 1023) << 52);
}

/// Square root by four Newton steps from a power of two.
constexpr double sqrt_of(double x) {
  if (!(x > 0)) return 0;
  double root = exp2_of(log2_of(x) * 0.5);
  for (int i = 0; i < 2; ++i) root = 0.5 * (root + x / root);
  return root;
}

/// Distribution function of the normal distribution to 1e-7 (Abramowitz and Stegun 1964, 7.1.26).
constexpr double normal_below(double z) {
  const double x = (z < 0 ? -z : z) * 0.70710678118654752;
  const double t = 1 / (1 + 0.3275911 * x);
  const double poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  const double tail = x > 26 ? 0 : 0.5 * poly * exp2_of(-1.4426950408889634 * x * x);
  return z < 0 ? tail : 1 - tail;
}

/// Bin `b` of a magnitude relative to the range is [2^((b - kZeroBin) / 2), the next); the lowest also holds 0.
inline constexpr int kBins = 88;
inline constexpr int kUnitBin = 80;

constexpr int bin_of(double magnitude) {
  if (!(magnitude > 0)) return 0;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(magnitude);
  const int exponent = static_cast<int>(bits >> 52) - 1023;
  const bool upper = (bits & ((UINT64_C(1) << 52) - 1)) >= UINT64_C(0x6A09E667F3BCD);  // the fraction of sqrt(2)
  return std::clamp(2 * exponent + (upper ? 1 : 0) + kUnitBin, 0, kBins - 1);
}
/// The lower edge of a bin.
constexpr double bin_edge(int bin) {
  const int half = bin - kUnitBin;
  const int whole = half >= 0 ? half / 2 : -((-half + 1) / 2);
  const double edge = std::bit_cast<double>(static_cast<std::uint64_t>(whole + 1023) << 52);
  return half - 2 * whole != 0 ? edge * 1.4142135623730951 : edge;
}

}  // namespace quern::surrogate
