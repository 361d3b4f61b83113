// From coefficients of the wavelet to codes, and from what is left of elements to corrections. All of it is a fixed
// sequence of rounded operations, the same on every device.
#pragma once

#include <cstdint>

#include "kernels/entropy/residual_tokens.h"
#include "kernels/stencil/elements.h"

namespace quern::kernels {

inline constexpr double kWaveletRounding = 0.36;       ///< added to magnitudes before they are cut
inline constexpr double kQuietWaveletRounding = 0.27;  ///< where all before is 0, so that a code costs many bits

/// Code of a coefficient; `inverse` is that of its step.
[[gnu::always_inline]] constexpr std::int32_t wavelet_code(double value, double inverse, double rounding) {
  const double magnitude = (value < 0 ? -value : value) * inverse + rounding;
  constexpr double kMost = kMaxMagnitude;
  const auto code = static_cast<std::int32_t>(magnitude < kMost ? magnitude : kMost);
  return value < 0 ? -code : code;
}

/// How far a coefficient lies beyond its code, at most a step, in units of 2^-kExcessBits steps: integers, whose sum is
/// the same in any order.
inline constexpr int kExcessBits = 16;
[[gnu::always_inline]] constexpr std::int32_t wavelet_excess(double value, double inverse, std::uint32_t magnitude) {
  const double beyond = (value < 0 ? -value : value) * inverse - static_cast<double>(magnitude);
  return static_cast<std::int32_t>(nearest((beyond < 1 ? beyond : 1) * (1 << kExcessBits)));
}

/// The correction that brings an element back that is off by so much, with what a correction of one adds; 0: none does.
[[gnu::always_inline]] constexpr double wavelet_correction(double off, double correction) {
  const double wanted = nearest(off) / correction;
  if (!(wanted < 0x1p20 && wanted > -0x1p20)) return 0;
  const double whole = nearest(wanted);
  if (whole != 0) return whole;
  return wanted < 0 ? -1 : 1;
}

}  // namespace quern::kernels
