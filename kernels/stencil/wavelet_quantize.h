// Numbers of the wavelet that a CPU and a device both compute, each by one function: lifting steps, codes from
// coefficients and back, and corrections. Each is a fixed sequence of rounded operations.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/round_to_integer.h"
#include "kernels/entropy/residual_tokens.h"

namespace quern::kernels {

/// Factors of the four lifting steps of the 9/7 transform, in units of 2^-16: of the high values, the low ones, and
/// both again. To be undone the steps are taken in the opposite order, with the opposite factors.
[[gnu::always_inline]] constexpr double wavelet_factor(std::size_t step) {
  constexpr double kFactors[] = {-103949, -3472, 57862, 29066};
  return kFactors[step];
}

/// A value after a lifting step, from those of the other kind beside it. Values are integers below 2^50.
[[gnu::always_inline]] constexpr double lifted(double value, double left, double right, double factor) {
  return value + nearest((left + right) * factor * 0x1p-16);
}

/// Larger magnitudes of codes count as this in contexts.
inline constexpr std::uint32_t kMaxWaveletMagnitude = (1u << 12) - 1;

/// What a code of a band of that step stands for: (|code| + offset / 64) steps, rounded down, with the code's sign; 0
/// for 0. Codes of 1 and -1 have an offset of their own. Wraps on bytes no encoder writes.
[[gnu::always_inline]] constexpr double wavelet_coefficient(std::int32_t code, std::int64_t offset_of_one,
                                                            std::int64_t offset_of_more, std::int64_t step) {
  const std::int64_t wide = code;
  const std::int64_t sign = wide >> 63;
  const std::int64_t magnitude = (wide ^ sign) - sign;
  const std::int64_t middle = magnitude * 64 + (magnitude == 1 ? offset_of_one : offset_of_more);
  const std::uint64_t scaled = static_cast<std::uint64_t>(middle) * static_cast<std::uint64_t>(step);
  const std::int64_t value = static_cast<std::int64_t>(scaled) >> 6;
  const std::int64_t known = magnitude == 0 ? 0 : value;
  return static_cast<double>((known ^ sign) - sign);
}

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
