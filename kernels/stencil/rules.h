// Numbers of the stencil codec that a CPU and a device both compute, each by one function: originals in units, classes
// of rows, the mean of planes, predictions from sums, and what codes and distances count in contexts. The wavelet's are
// in wavelet_quantize.h. tests/unit_stencil/rules_test.cpp compares the loops over vectors with these functions.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/round_to_integer.h"

namespace quern::kernels {

/// Originals lie in (-2^44, 2^44) units by the choice of format.
inline constexpr double kMaxUnits = 0x1p44;

/// An original in units, not rounded; 0 when it is not finite or out of range. `inverse` is 1 / unit.
[[gnu::always_inline]] constexpr double in_units(double original, double base, double inverse) {
  const double units = (original - base) * inverse;
  return units > -kMaxUnits && units < kMaxUnits ? units : 0;
}

/// Rows of a chunk in raster order by what they can see: 2 * (first, second, later plane) + (first, later row). A plane
/// that has one row has later rows only.
inline constexpr std::uint32_t kRowClasses = 6;
template <class Size>
[[gnu::always_inline]] constexpr Size row_class(Size plane, Size row, Size rows) {
  return 2 * (plane < 2 ? plane : Size{2}) + (rows > 1 && row == 0 ? Size{0} : Size{1});
}

/// The share of plane `plane` - 1 in the mean that `plane` (at least 1) sees, in 256ths: all at first, at least 3/16.
[[gnu::always_inline]] constexpr double mean_weight(std::uint32_t plane) {
  const std::uint32_t share = 256 / plane;
  return static_cast<double>(share > 48 ? share : 48) * 0x1p-8;
}
/// The mean one plane on, of integers.
[[gnu::always_inline]] constexpr double next_mean(double mean, double value, double weight) {
  return mean + nearest((value - mean) * weight);
}

/// A prediction from its weighted sum: sum / 2^bits, rounded half up; bits >= 1. Wraps on bytes no encoder writes.
[[gnu::always_inline]] constexpr std::int64_t scaled_down(std::uint64_t sum, unsigned bits) {
  return static_cast<std::int64_t>(sum + (std::uint64_t{1} << (bits - 1))) >> bits;
}

/// Larger magnitudes of codes count as this in contexts.
inline constexpr std::uint32_t kMaxContextMagnitude = (1u << 18) - 1;

/// What a code counts in contexts: its magnitude, at most `most`. A code of 64 bits is above the least one; narrower ones
/// may be any, and their bit patterns.
template <class Code>
[[gnu::always_inline]] constexpr std::uint32_t capped_magnitude(Code code, std::uint32_t most) {
  if constexpr (std::is_same_v<Code, std::int64_t>) {  // with a sign: GCC 12 makes faster loops of it
    const std::int64_t size = code < 0 ? -code : code;
    return static_cast<std::uint32_t>(size < std::int64_t{most} ? size : std::int64_t{most});
  } else {
    const auto bits = static_cast<std::uint32_t>(code);
    const std::uint32_t size = static_cast<std::int32_t>(bits) < 0 ? 0 - bits : bits;
    return size < most ? size : most;
  }
}

/// Larger distances of values count as this in contexts.
inline constexpr std::uint32_t kMaxSpread = (1u << 16) - 1;
/// Fraction bits of the weighted sum of a context's distances.
inline constexpr unsigned kSpreadFractionBits = 6;

/// What a distance counts in contexts: |difference| * scale, rounded down, at most `most`, which is below 2^31.
[[gnu::always_inline]] constexpr std::uint32_t capped_spread(double difference, double scale, double most) {
  const double scaled = (difference < 0 ? -difference : difference) * scale;
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(scaled < most ? scaled : most));
}

}  // namespace quern::kernels
