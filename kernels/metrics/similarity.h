// Mean structural similarity (Wang, Bovik, Sheikh, Simoncelli 2004) with a uniform window: its definition, whatever
// walks the array.
//
// Volumes are the last three axes (two for rank 2); all leading axes are walked. The window is 7 elements along each
// axis, or the axis where that is shorter, at stride 1, wholly inside the volume. In each window
//   SSIM = (2 mx my + C1) (2 sxy + C2) / ((mx^2 + my^2 + C1) (sx^2 + sy^2 + C2)),
// with means m, sample variances and covariance s (divisor n - 1), C1 = (0.01 L)^2, C2 = (0.03 L)^2 and L = max - min
// of the original's valid values. A window that holds an invalid element is left out; the result is the mean over all
// windows that remain. Sums are taken over values shifted by the middle of the range and divided by L, where their
// cancellation is harmless beside C2.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/metrics/error_measures.h"
#include "kernels/metrics/real.h"

namespace quern::verifier {

inline constexpr std::uint64_t kWindow = 7;
/// Beyond this, in units of L, the window's similarity is 0 in any case, and squares stay in range.
inline constexpr double kFar = 1e100;

/// How an array falls apart into volumes and windows; axis 0 is the slowest.
struct WindowLayout {
  std::uint64_t volumes = 1;
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::array<std::uint64_t, 3> window{1, 1, 1};
  std::array<std::uint64_t, 3> positions{1, 1, 1};  ///< of the window

  constexpr explicit WindowLayout(std::span<const std::uint64_t> shape) {
    const std::size_t inner = std::min<std::size_t>(shape.size(), 3);
    for (std::size_t a = 0; a + inner < shape.size(); ++a) volumes *= shape[a];
    for (std::size_t a = 0; a < inner; ++a) extents[3 - inner + a] = shape[shape.size() - inner + a];
    for (std::size_t a = 0; a < 3; ++a) {
      window[a] = kWindow < extents[a] ? kWindow : extents[a];
      positions[a] = extents[a] - window[a] + 1;
    }
  }
  /// Data with fewer than two axes longer than 1 have no structure, and empty data no window.
  constexpr bool has_windows() const {
    const auto ones = std::count(extents.begin(), extents.end(), 1u);
    const auto zeros = std::count(extents.begin(), extents.end(), 0u);
    return volumes != 0 && zeros == 0 && ones < 2;
  }
  constexpr double window_elems() const { return static_cast<double>(window[0] * window[1] * window[2]); }
};

/// Whether errors and range allow it; only a finite range that is not 0 makes constants.
constexpr bool has_similarity(const ErrorExtremes& of) {
  const double length = of.max - of.min;
  return of.valid != 0 && is_finite(of.max_error) && length > 0 && is_finite(length);
}

/// Of one window, in units of L; `offset` is what was taken from the means. `variances` is their sum.
[[gnu::always_inline]] constexpr double similarity(double mean_x, double mean_y, double variances, double covariance,
                                                   double offset) {
  constexpr double kC1 = 0.01 * 0.01;
  constexpr double kC2 = 0.03 * 0.03;
  // (2 a b + C1) / (a^2 + b^2 + C1) with the difference of the means taken before the offset is put back.
  const double a = mean_x + offset;
  const double b = mean_y + offset;
  const double luminance = 1 - (mean_x - mean_y) * (mean_x - mean_y) / (a * a + b * b + kC1);
  return luminance * (2 * covariance + kC2) / (variances + kC2);
}

}  // namespace quern::verifier
