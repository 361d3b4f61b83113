// The range of a chunk and, from it and the bound, the fixed-point format that its values get.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include <quern/codec.h>

#include "codecs/stencil/chunk.h"
#include "codecs/stencil/elements.h"
#include "codecs/stencil/model.h"

namespace quern::codec::stencil {

struct ChunkRange {
  double low = 0;
  double high = 0;
  std::uint64_t ordinary = 0;                   ///< finite elements that are not special
  std::array<std::uint32_t, 2048> exponents{};  ///< how many of them have that biased binary64 exponent
};

template <class Element>
ChunkRange chunk_range(const ConstBox3& in) {
  ChunkRange range;
  range.low = std::bit_cast<double>(UINT64_C(0x7FF0000000000000));
  range.high = -range.low;
  const auto* const data = static_cast<const typename Element::Bits*>(in.data);
  const std::size_t rows = static_cast<std::size_t>(in.extents[0] * in.extents[1]);
  for (std::size_t r = 0; r < rows; ++r) {
    const auto* const row = data + row_offset(in, r);
    const std::uint8_t* const special = special_row(in, r);
    for (std::size_t x = 0; x < in.extents[2]; ++x) {
      if (special != nullptr && special[x] != 0) continue;
      const double v = Element::value(row[x]);
      const std::uint64_t exponent = std::bit_cast<std::uint64_t>(v) >> 52 & 0x7FF;
      if (exponent == 0x7FF) continue;
      range.low = v < range.low ? v : range.low;
      range.high = v > range.high ? v : range.high;
      ++range.exponents[exponent];
      ++range.ordinary;
    }
  }
  return range;
}

/// Bits that the fraction of an element has; integers count as a lattice of distance 1.
constexpr int fraction_bits_of(DType dtype) {
  switch (dtype) {
    case DType::f16: return 10;
    case DType::bf16: return 7;
    case DType::f64: return 52;
    default: return 23;
  }
}

/// Half the distance of codes for which values on the lattice of the element type keep the bound after rounding to it:
/// in a binade of spacing u, floor(bound/u) + 1/2 spacings. Binades with few elements do not count.
inline double largest_error(const ChunkRange& range, DType dtype, double bound) {
  if (is_integer(dtype)) return std::floor(bound) + 0.5;
  double error = bound;
  for (int e = 2046; e > 0; --e) {
    if (range.exponents[static_cast<std::size_t>(e)] <= range.ordinary / 1024) continue;
    const double spacing = std::ldexp(1.0, e - 1023 - fraction_bits_of(dtype));
    if (spacing < bound * 0x1p-12) break;
    const double reach = (std::floor(bound / spacing) + 0.5) * spacing;
    error = reach < error ? reach : error;
  }
  return error;
}

/// Sets base, step and bit counts; false when codes would not fit.
inline bool choose_format(const ChunkRange& range, DType dtype, double bound, ChunkModel& model) {
  const double middle = range.low / 2 + range.high / 2;
  model.base = short_double(middle);
  const double error = largest_error(range, dtype, bound);
  const double low = range.low - model.base;
  const double high = range.high - model.base;
  const double reach = (high > -low ? high : -low) / error;
  if (!(reach < 0x1p29) || !(error > 0x1p-900) || !(error < 0x1p900)) return false;
  int bits = 1;
  while (std::ldexp(1.0, bits) < reach) ++bits;
  model.weight_bits = bits < 8 ? 12 : bits < 12 ? 14 : bits < 24 ? 16 : 12;
  // Sums of weights times values stay below 2^51.
  model.fraction_bits = static_cast<unsigned>(
      std::min(static_cast<int>(kMaxFractionBits), 46 - static_cast<int>(model.weight_bits) - bits));
  model.step = short_double(2 * error / (1 + std::ldexp(1.0, -static_cast<int>(model.fraction_bits))));
  return true;
}

}  // namespace quern::codec::stencil
