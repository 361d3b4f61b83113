// The context of a class from a sample of its codes: a line through the mean magnitudes of codes by what is around them.
// A CPU and a device compute it by this function, in binary64 and the order of bins.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/entropy/context_bin.h"
#include "kernels/interp/predict.h"

namespace quern::kernels {

/// Codes whose spreads have the same context_bin(): how many, and the sums of their spreads and magnitudes.
struct InterpFitBin {
  std::uint64_t count = 0;
  std::uint64_t spread = 0;
  std::uint64_t magnitude = 0;
};

namespace detail {

constexpr std::uint16_t fitted_number(double v, std::uint32_t most) {
  if (!(v > 0)) return 0;
  return static_cast<std::uint16_t>(v < most ? v + 0.5 : most);
}

}  // namespace detail

/// Least squares over the means of bin_at(0) to bin_at(kContextBins - 1). A mean counts by the number of its codes and
/// inversely by its square, as errors of magnitudes grow with them.
template <class BinAt>
constexpr InterpContext interp_fit_context(const BinAt& bin_at) {
  constexpr double kLeastMagnitude = 1.0 / 16;
  double n = 0;
  double x = 0;
  double y = 0;
  double xx = 0;
  double xy = 0;
  for (std::size_t b = 0; b < kContextBins; ++b) {
    const InterpFitBin bin = bin_at(b);
    if (bin.count == 0) continue;
    const auto count = static_cast<double>(bin.count);
    const double spread = static_cast<double>(bin.spread) / count;
    const double magnitude = static_cast<double>(bin.magnitude) / count;
    const double scale = magnitude + kLeastMagnitude;
    const double weight = count / (scale * scale);
    n += weight;
    x += weight * spread;
    y += weight * magnitude;
    xx += weight * spread * spread;
    xy += weight * spread * magnitude;
  }
  if (n == 0) return {};
  const double spread_of = xx * n - x * x;
  double slope = spread_of > xx * n * 0x1p-20 ? (xy * n - x * y) / spread_of : 0;
  slope = slope > 0 ? slope : 0;
  const double at_zero = y / n - slope * x / n;
  return {detail::fitted_number(slope * kInterpContextOne, kInterpMostWeight),
          detail::fitted_number(at_zero * kInterpContextOne, UINT16_MAX)};
}

/// One row of so many of a class is in the sample.
constexpr std::uint64_t interp_fit_stride(std::uint64_t codes) {
  constexpr std::uint64_t kSample = 1u << 14;
  return codes / kSample + 1;
}

}  // namespace quern::kernels
