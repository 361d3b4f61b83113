// From the range of a chunk and the bound to base, step and fraction bits of its values.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <quern/dtype.h>

#include "coding/value_format.h"
#include "kernels/entropy/residual_tokens.h"
#include "libcompress/core/quantizer_rules.h"

namespace quern::codec::interp {

/// Narrow values are below 2^this in magnitude: sums of their products with weights, and what overshoots, fit 32 bits.
inline constexpr int kNarrowBits = 22;
/// Wide ones: binary64 rounds them to integers.
inline constexpr int kWideBits = 50;
inline constexpr int kLeastFractionBits = 4;
/// Elements of so many units and more are out of range.
constexpr double most_units(bool narrow) {
  return static_cast<double>(std::uint64_t{1} << (narrow ? kNarrowBits : kWideBits));
}

struct ChunkFormat {
  coding::ValueFormat values;
  bool narrow = false;
};

/// Of finite elements that are not special; low > high: there are none.
struct ChunkRange {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  double first = 0;  ///< the first of them
};

/// The error that a value may have before it is rounded to the element type.
inline double error_before_rounding(const ChunkRange& range, DType dtype, double bound) {
  if (is_integer(dtype)) return std::floor(bound) + 0.5;
  const double largest = std::max(std::fabs(range.low), std::fabs(range.high));
  const double rounding =
      largest > 0 ? std::ldexp(1.0, std::ilogb(largest) - static_cast<int>(fraction_bits(dtype)) - 1) : 0;
  return std::max(bound - rounding, bound / 2);
}

/// False when no codes serve the range.
inline bool choose_format(const ChunkRange& range, DType dtype, double bound, ChunkFormat& format) {
  if (range.low > range.high) return false;
  const double error = error_before_rounding(range, dtype, bound);
  format.values.base = coding::short_double(range.low / 2 + range.high / 2);
  const auto reach = [&] { return std::max(range.high - format.values.base, format.values.base - range.low) / error; };
  if (!(reach() < 0x1p40) || !(error > 0x1p-900) || !(error < 0x1p900)) return false;
  // A code is two errors: half the reach, and one for what rounding adds.
  const auto bits_of = [&] { return std::max(1, std::ilogb(reach() / 2 + 1) + 1); };
  // One code does not lead from the middle to every value: the first anchor begins where it is.
  if (bits_of() > static_cast<int>(kernels::kMaxMagnitudeBits)) format.values.base = coding::short_double(range.first);
  const int bits = bits_of();
  format.narrow = bits + kLeastFractionBits <= kNarrowBits;
  const int most = (format.narrow ? kNarrowBits : kWideBits) - bits;
  format.values.fraction_bits = static_cast<unsigned>(std::min(most, static_cast<int>(coding::kMaxFractionBits)));
  // Rounding to units adds half a unit to half a step.
  format.values.step =
      coding::short_double(2 * error / (1 + std::ldexp(1.0, -static_cast<int>(format.values.fraction_bits))));
  return true;
}

}  // namespace quern::codec::interp
