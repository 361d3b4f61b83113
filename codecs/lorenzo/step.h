// The step of binary32 codes under an absolute bound E. With a step of 2E a value in the middle between two codes can
// miss E by a rounding, the more often the larger its code, and each that does is an exception of at least 4 bytes. A
// slightly smaller step leaves room for the roundings of all codes up to N:
//
//   slack = min((3.1 N + 2) 2^-23, 1/32)        step = largest binary32 number <= 2 E (1 - slack)
//
// Proof and costs: docs/adr/026-step-with-slack.md. N comes from the largest magnitude in a sample; the encoder checks
// every value all the same, so that a value beyond N costs an exception at most.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/common/quantize.h"
#include "libcompress/core/quantizer_rules.h"

namespace quern::codec::lorenzo {

/// Roundings are in units of 2^-23 of the code; see the proof.
inline constexpr double kRoundingUnit = 0x1p-23;
inline constexpr double kMaxSlack = 0x1p-5;
/// The largest N whose slack is not cut off.
inline constexpr std::uint64_t kMaxServedCode = 84560;
/// What values beyond the sample may have above its largest magnitude.
inline constexpr double kPeakReserve = 1.25;
/// Steps outside are left as they are: products with them could be subnormal or infinite.
inline constexpr double kLeastSlackStep = 0x1p-100;
inline constexpr double kMostSlackStep = 0x1p100;

/// N rounded up to a power of two or one and a half of it, so that the step hardly depends on the sample.
constexpr std::uint64_t rounded_code(std::uint64_t code) {
  if (code <= 2) return 2;
  const std::uint64_t below = std::bit_floor(code);
  if (code == below) return code;
  return code <= below + below / 2 ? below + below / 2 : 2 * below;
}

/// N of an array whose sample has magnitudes up to `peak`, under `largest_error`; both finite and not below 0.
constexpr std::uint64_t served_code(double peak, double largest_error) {
  const double code = kPeakReserve * peak / (2 * largest_error);
  if (!(code < static_cast<double>(kMaxServedCode))) return kMaxServedCode;
  return std::min(rounded_code(static_cast<std::uint64_t>(code) + 2), kMaxServedCode);
}

/// Makes the step smaller by the slack of codes up to `served`, at most kMaxServedCode, and promises them.
constexpr void take_slack(std::uint64_t served, kernels::QuantizerParams& params) {
  if (!(params.step >= kLeastSlackStep && params.step <= kMostSlackStep)) return;
  const double slack = std::min((3.1 * static_cast<double>(served) + 2) * kRoundingUnit, kMaxSlack);
  const float step = round_down<float>(params.step * (1 - slack));
  params.step = step;
  params.reciprocal = 1 / step;
  params.promised = served;
}

}  // namespace quern::codec::lorenzo
