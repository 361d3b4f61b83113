// The range of a chunk and, from it and the bound, the fixed-point format that its values get.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include <quern/codec.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/elements.h"
#include "codecs/stencil/prediction_format.h"
#include "kernels/stencil/cpu/stencil.h"
#include "libcompress/core/scattered_sample.h"

namespace quern::codec::stencil {

struct ChunkRange {
  double low = 0;
  double high = 0;
  std::uint64_t ordinary = 0;                   ///< finite elements that are not special
  std::array<std::uint32_t, 2048> exponents{};  ///< how many of some of them have that biased binary64 exponent; none
                                                ///< are counted where it does not matter
  std::uint64_t counted = 0;                    ///< those
};

/// Bits that the fraction of an element has; integers count as a lattice of distance 1.
constexpr int fraction_bits_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return 10;
    case DType::bf16: return 7;
    case DType::f64: return 52;
    default: return 23;
  }
}

/// Counts exponents where the spacing of elements matters against the bound, in rows of about so many elements: see
/// largest_error.
template <class Element>
void count_exponents(const ConstBox3& in, ChunkRange& range) {
  constexpr std::size_t kTables = 4;  // in turn: neighbours mostly have the same exponent, and would wait for it
  constexpr std::size_t kNotFinite = 0x7FF;
  std::array<decltype(range.exponents), kTables> counts{};
  const auto* const data = static_cast<const typename Element::Bits*>(in.data);
  constexpr std::uint64_t kElems = std::uint64_t{1} << 17;
  const std::uint64_t rows = in.extents[0] * in.extents[1];
  const std::uint64_t wanted = std::min(rows, kElems / in.extents[2] + 1);
  for (std::uint64_t i = 0; i < wanted; ++i) {
    const auto r = static_cast<std::size_t>(scattered_sample(rows, wanted, i));
    const auto* const row = data + row_offset(in, r);
    const std::uint8_t* const special = special_row(in, r);
    const auto count = [&](std::size_t table, std::size_t x) {
      ++counts[table][std::bit_cast<std::uint64_t>(Element::value(row[x])) >> 52 & kNotFinite];
    };
    std::size_t x = 0;
    if (special == nullptr)
      for (; x + kTables <= in.extents[2]; x += kTables)
        for (std::size_t t = 0; t < kTables; ++t) count(t, x + t);
    for (; x < in.extents[2]; ++x)
      if (special == nullptr || special[x] == 0) count(0, x);
  }
  for (const auto& table : counts)
    for (std::size_t e = 0; e < kNotFinite; ++e) {
      range.exponents[e] += table[e];
      range.counted += table[e];
    }
}

/// Elements are spaced too closely to matter from here downwards.
inline bool too_close(double spacing, double bound) { return spacing < bound * 0x1p-12; }

/// Widens a range to the elements of a box, and counts them.
template <class Element>
void add_range(const ConstBox3& in, const kernels::StencilKernels& kernels, ChunkRange& range) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr std::size_t kPartialRanges = 8;
  constexpr std::size_t kLineBytes = 64;        // of memory that are fetched together
  constexpr std::size_t kRowsAhead = 6;         // memory takes longer than a row does
  std::array<double, kPartialRanges> low;       // NOLINT: filled; so the next
  std::array<double, kPartialRanges> high;      // NOLINT
  std::array<double, kPartialRanges> ordinary;  // NOLINT
  low.fill(kInfinity);
  high.fill(-kInfinity);
  ordinary.fill(0);
  std::array<float, kernels::kRangeLanes> float_low;   // NOLINT: filled; so the next
  std::array<float, kernels::kRangeLanes> float_high;  // NOLINT
  float_low.fill(std::numeric_limits<float>::infinity());
  float_high.fill(-std::numeric_limits<float>::infinity());
  const auto* const data = static_cast<const typename Element::Bits*>(in.data);
  const std::size_t rows = static_cast<std::size_t>(in.extents[0] * in.extents[1]);
  for (std::size_t r = 0; r < rows; ++r) {
    const auto* const row = data + row_offset(in, r);
    const std::uint8_t* const special = special_row(in, r);
    if constexpr (std::is_same_v<Element, F32>) {
      if (special == nullptr) {
        // Rows of a chunk do not follow each other: processors do not foresee them.
        if (r + kRowsAhead < rows) {
          const auto* const ahead = reinterpret_cast<const std::uint8_t*>(data + row_offset(in, r + kRowsAhead));
          for (std::size_t at = 0; at < in.extents[2] * sizeof(float); at += kLineBytes) __builtin_prefetch(ahead + at);
        }
        range.ordinary += kernels.range(row, in.extents[2], float_low.data(), float_high.data());
        continue;
      }
    }
    const auto take = [&](std::size_t lane, double v, bool counts) {
      const bool ok = counts && v - v == 0;
      const double from = ok ? v : kInfinity;
      const double to = ok ? v : -kInfinity;
      low[lane] = from < low[lane] ? from : low[lane];
      high[lane] = to > high[lane] ? to : high[lane];
      ordinary[lane] += ok ? 1.0 : 0.0;
    };
    std::size_t x = 0;
    if (special == nullptr) {
      for (; x + kPartialRanges <= in.extents[2]; x += kPartialRanges)
        for (std::size_t lane = 0; lane < kPartialRanges; ++lane) take(lane, Element::value(row[x + lane]), true);
    }
    for (; x < in.extents[2]; ++x) take(0, Element::value(row[x]), special == nullptr || special[x] == 0);
  }
  for (std::size_t lane = 0; lane < kPartialRanges; ++lane) {
    range.low = std::min(range.low, low[lane]);
    range.high = std::max(range.high, high[lane]);
    range.ordinary += static_cast<std::uint64_t>(ordinary[lane]);
  }
  for (std::size_t lane = 0; lane < kernels::kRangeLanes; ++lane) {
    range.low = std::min(range.low, double{float_low[lane]});
    range.high = std::max(range.high, double{float_high[lane]});
  }
}

/// The range of a chunk, whose elements are those of the `parts`.
template <class Element>
ChunkRange chunk_range(const ConstBox3& in, DType dtype, double bound, const kernels::StencilKernels& kernels,
                       std::span<const ConstBox3> parts) {
  ChunkRange range;
  range.low = std::numeric_limits<double>::infinity();
  range.high = -std::numeric_limits<double>::infinity();
  for (const ConstBox3& part : parts) add_range<Element>(part, kernels, range);
  if (range.ordinary == 0 || is_integer(dtype)) return range;
  const double largest = std::max(std::fabs(range.low), std::fabs(range.high));
  if (largest > 0 && !too_close(std::ldexp(1.0, std::ilogb(largest) - fraction_bits_of(dtype)), bound))
    count_exponents<Element>(in, range);
  return range;
}

/// Half the distance of codes for which values on the lattice of the element type keep the bound after rounding to it:
/// in a binade of spacing u, floor(bound/u) + 1/2 spacings. Binades with few elements do not count.
inline double largest_error(const ChunkRange& range, DType dtype, double bound) {
  if (is_integer(dtype)) return std::floor(bound) + 0.5;
  double error = bound;
  for (int e = 2046; e > 0; --e) {
    if (range.exponents[static_cast<std::size_t>(e)] <= range.counted / 1024) continue;
    const double spacing = std::ldexp(1.0, e - 1023 - fraction_bits_of(dtype));
    if (too_close(spacing, bound)) break;
    const double reach = (std::floor(bound / spacing) + 0.5) * spacing;
    error = reach < error ? reach : error;
  }
  return error;
}

/// The distance of codes under which every value comes back within half of `twice_error`. Values are rounded to units,
/// then codes to steps; without fraction bits both are the same.
inline double step_of(double twice_error, unsigned fraction_bits) {
  return coding::short_double(
      fraction_bits == 0 ? twice_error : twice_error / (1 + std::ldexp(1.0, -static_cast<int>(fraction_bits))));
}
/// What such a step is made of.
inline double twice_error_of(const coding::ValueFormat& format) {
  return format.fraction_bits == 0 ? format.step
                                   : format.step * (1 + std::ldexp(1.0, -static_cast<int>(format.fraction_bits)));
}

/// The largest distance of a value from the base.
inline double farthest(const ChunkRange& range, const coding::ValueFormat& format) {
  return std::max(range.high - format.base, format.base - range.low);
}

/// Whether the largest code may not reach from a prediction to its element. What comes back is then between the two, and
/// predictions from that may go farther astray: encoders look at it, because sums of weights times values are exact
/// below 2^51 alone. Magnitudes of weights sum to at most 16.
inline bool codes_may_fall_short(const ChunkRange& range, const coding::ValueFormat& format) {
  return !(farthest(range, format) < 0x1p26 * format.step);
}

/// Whether kernels of devices leave a chunk to the host: they take ranges of up to 2^29 bounds on each side of the base.
inline bool beyond_devices(const ChunkRange& range, const coding::ValueFormat& format) {
  return !(farthest(range, format) < 0x1p28 * twice_error_of(format));
}

/// True when magnitudes of `count` values are at most `most`.
inline bool all_within(const double* values, std::size_t count, double most) {
  double largest = 0;
  for (std::size_t x = 0; x < count; ++x) {
    const double v = values[x] < 0 ? -values[x] : values[x];
    largest = v > largest ? v : largest;
  }
  return largest <= most;
}

/// Sets base, step and bit counts; false when values would not fit. A code has 30 bits: where it does not reach, the
/// first elements are exceptions, until values have come near them code by code.
inline bool choose_format(const ChunkRange& range, DType dtype, double bound, PredictionFormat& format) {
  const double middle = range.low / 2 + range.high / 2;
  format.base = coding::short_double(middle);
  const double error = largest_error(range, dtype, bound);
  const double low = range.low - format.base;
  const double high = range.high - format.base;
  const double reach = (high > -low ? high : -low) / error;
  if (!(reach < 0x1p35) || !(error > 0x1p-900) || !(error < 0x1p900)) return false;
  int bits = 1;
  while (std::ldexp(1.0, bits) < reach) ++bits;
  format.weight_bits = bits < 8 ? 12 : bits < 12 ? 14 : bits < 24 ? 16 : 12;
  // Sums of weights times values stay below 2^51.
  format.fraction_bits = static_cast<unsigned>(
      std::clamp(46 - static_cast<int>(format.weight_bits) - bits, 0, static_cast<int>(coding::kMaxFractionBits)));
  format.step = step_of(2 * error, format.fraction_bits);
  return true;
}

}  // namespace quern::codec::stencil
