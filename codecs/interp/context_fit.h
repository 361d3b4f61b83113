// The context of a class, fitted to a sample of its codes: a line through the mean magnitudes of codes by what is
// around them.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "kernels/entropy/context_bin.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/interp/predict.h"

namespace quern::codec::interp {

class ContextFit {
 public:
  void add(const std::uint32_t* spread, const std::int32_t* codes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      Bin& bin = bins_[kernels::context_bin(spread[i])];
      ++bin.count;
      bin.spread += spread[i];
      bin.magnitude += kernels::interp_magnitude(codes[i]);
    }
  }

  /// Least squares over the bins' means, in binary64 and the order of bins. A mean counts by the number of its codes
  /// and inversely by its square, as errors of magnitudes grow with them.
  kernels::InterpContext fit() const {
    double n = 0;
    double x = 0;
    double y = 0;
    double xx = 0;
    double xy = 0;
    for (const Bin& bin : bins_) {
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
    return {rounded(slope * kernels::kInterpContextOne, kernels::kInterpMostWeight),
            rounded(at_zero * kernels::kInterpContextOne, UINT16_MAX)};
  }

 private:
  static constexpr double kLeastMagnitude = 1.0 / 16;

  static std::uint16_t rounded(double v, std::uint32_t most) {
    if (!(v > 0)) return 0;
    return static_cast<std::uint16_t>(v < most ? v + 0.5 : most);
  }

  struct Bin {
    std::uint64_t count = 0;
    std::uint64_t spread = 0;
    std::uint64_t magnitude = 0;
  };
  std::array<Bin, kernels::kContextBins> bins_{};
};

}  // namespace quern::codec::interp
