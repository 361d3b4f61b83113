// Arrays behind golden streams of stencil: waves with noise, coasts, spikes.
#pragma once

#include <string>

#include "tests/golden/groups.h"
#include "tests/golden/values.h"

namespace quern::golden {

using Extents = std::initializer_list<std::uint64_t>;

/// Parabolic waves of period 2 * half along one axis, between -1 and 1.
inline double wave(std::uint64_t place, std::int64_t half) {
  const auto at = static_cast<std::int64_t>(place) % (2 * half);
  const std::int64_t within = at % half;
  const double arch = static_cast<double>(4 * within * (half - within)) / static_cast<double>(half * half);
  return at < half ? arch : -arch;
}

/// A sum of waves along every axis and of noise of that size, whole numbers of 1/1024.
inline double field(Extents extents, std::uint64_t i, double noise_size) {
  double sum = 0;
  std::uint64_t rest = i;
  std::int64_t half = 11;
  for (std::size_t a = extents.size(); a-- > 0; half += 3) {
    sum += wave(rest % extents.begin()[a], half);
    rest /= extents.begin()[a];
  }
  return sum + noise_size * static_cast<double>(swing(41, i, 2048)) / 1024;
}

/// `scale` times the field, moved by `base`.
inline testing::OwnedArray waves(DType dtype, Extents extents, double noise_size, double scale = 1, double base = 0) {
  return values_of(dtype, extents, [&](std::uint64_t i) { return base + scale * field(extents, i, noise_size); });
}

inline CompressOptions stencil(double bound, const char* layout) {
  return with(BoundKind::abs, bound, "stencil", {{"layout", layout}});
}

/// An array with a coast: NaN where a parabola lies above it, and now and then alone.
inline testing::OwnedArray with_land(testing::OwnedArray array, std::uint64_t bits) {
  const std::uint64_t columns = array.shape[array.shape.rank() - 1];
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i) {
    const std::uint64_t x = i % columns;
    if (x * x / 12 < i / columns % 14 || noise(42, i, 50) == 0) set_bits(array, i, bits);
  }
  return array;
}

/// Elements far from those around them.
inline testing::OwnedArray with_spikes(testing::OwnedArray array, double size) {
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i)
    if (noise(43, i, 90) == 0) testing::store_element(array, i, i % 2 == 0 ? size : -size);
  return array;
}

/// -0.0 here and there: close to what comes back, but not the same bits. Too few for a mask.
inline testing::OwnedArray with_minus_zeros(testing::OwnedArray array) {
  const std::uint64_t sign = UINT64_C(1) << (8 * dtype_bytes(array.dtype) - 1);
  for (std::uint64_t i = 0; i < array.shape.elems(); ++i)
    if (noise(44, i, 150) == 0 || i == 300 || i == 301) set_bits(array, i, sign);
  return array;
}

}  // namespace quern::golden
