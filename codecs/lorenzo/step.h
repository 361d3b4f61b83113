// The step of binary32 codes under an absolute bound E. With a step of 2E a value in the middle between two codes can
// miss E by a rounding, the more often the larger its code, and each that does is an exception of at least 8 bytes. A
// slightly smaller step leaves room for the roundings of all codes up to N:
//
//   slack = (3.1 N + 2) 2^-23        step = largest binary32 number <= 2 E (1 - slack)
//
// It costs -log2(1 - slack) bits a value. A sample says how large codes are, and whether it has enough exceptions under
// the step of 2E to pay for that. Proof and figures: docs/adr/026-step-with-slack.md.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/quantize.h"
#include "libcompress/core/quantizer_rules.h"

namespace quern::codec::lorenzo {

/// Roundings are in units of 2^-23 of the code; see the proof.
inline constexpr double kRoundingUnit = 0x1p-23;
/// The largest N that is served: its slack is 1/32.
inline constexpr std::uint32_t kMaxServedCode = 84560;
/// What values beyond the sample may have above its largest magnitude.
inline constexpr double kPeakReserve = 1.25;
/// Steps outside are left as they are: products with them could be subnormal or infinite.
inline constexpr double kLeastSlackStep = 0x1p-100;
inline constexpr double kMostSlackStep = 0x1p100;
/// An exception's element, the mask of its row, and half of the tile's mask of rows.
inline constexpr double kExceptionBits = 80;
/// -log2(1 - slack) / slack is at most this.
inline constexpr double kBitsOfSlack = 1.47;

/// N rounded up to a power of two or one and a half of it, so that the step hardly depends on the sample.
constexpr std::uint64_t rounded_code(std::uint64_t code) {
  std::uint64_t power = 2;
  while (2 * power <= code) power *= 2;
  if (code <= power) return power;
  return code <= power + power / 2 ? power + power / 2 : 2 * power;
}

/// N of an array whose sample has magnitudes up to `peak`, under `largest_error`; both finite and not below 0.
constexpr std::uint64_t served_code(double peak, double largest_error) {
  const double code = kPeakReserve * peak / (2 * largest_error);
  if (!(code < kMaxServedCode)) return kMaxServedCode;
  const std::uint64_t rounded = rounded_code(static_cast<std::uint64_t>(code) + 2);
  return rounded < kMaxServedCode ? rounded : kMaxServedCode;
}

constexpr double slack_of(std::uint64_t served) { return (3.1 * static_cast<double>(served) + 2) * kRoundingUnit; }

/// Makes a step of 2E smaller by the slack of codes up to `served`, at most kMaxServedCode, and promises them.
constexpr void set_slack(std::uint64_t served, kernels::QuantizerParams& params) {
  const float step = round_down<float>(params.step * (1 - slack_of(served)));
  params.step = step;
  params.reciprocal = 1 / step;
  params.promised = served;
}

/// What a sample of binary32 elements says. Integers alone: whatever the order of the elements, it is the same.
struct StepSample {
  std::uint32_t elems = 0;
  std::uint32_t saved = 0;  ///< exceptions under a step of 2E, but not under one with the largest slack
  std::uint32_t peak = 0;   ///< the largest magnitude of finite elements, as its bits
};

/// Adds b to a.
constexpr void add_sample(StepSample& a, const StepSample& b) {
  a.elems += b.elems;
  a.saved += b.saved;
  if (b.peak > a.peak) a.peak = b.peak;
}

/// Reads the elements of a sample under a step of 2E.
class StepLook {
 public:
  using Quantizer = kernels::AbsQuantizer32<kernels::Binary32>;

  constexpr explicit StepLook(const kernels::QuantizerParams& params)
      : plain_(params), slack_(with_slack(kMaxServedCode, params)) {}

  /// Whether codes serve an element so simply that `add` would find nothing saved.
  constexpr bool accepts(std::uint32_t bits) const {
    std::uint32_t code = 0;
    return plain_.encode(bits, code);
  }
  constexpr void add(std::uint32_t bits, StepSample& sample) const {
    constexpr std::uint32_t kMagnitude = 0x7fffffff;
    constexpr std::uint32_t kInfinity = 0x7f800000;
    const std::uint32_t magnitude = bits & kMagnitude;
    ++sample.elems;
    if (magnitude >= kInfinity) return;
    if (magnitude > sample.peak) sample.peak = magnitude;
    if (accepts(bits) || plain_.accepts_exactly(bits)) return;
    std::uint32_t code = 0;
    if (slack_.encode(bits, code)) ++sample.saved;
  }

 private:
  static constexpr kernels::QuantizerParams with_slack(std::uint64_t served, kernels::QuantizerParams params) {
    set_slack(served, params);
    return params;
  }

  Quantizer plain_;
  Quantizer slack_;
};

/// Given parameters with a step of 2E, takes slack where the sample's exceptions cost more.
constexpr void choose_step(const StepSample& sample, kernels::QuantizerParams& params) {
  if (!(params.step >= kLeastSlackStep && params.step <= kMostSlackStep)) return;
  const std::uint64_t served = served_code(std::bit_cast<float>(sample.peak), params.strict);
  if (kExceptionBits * sample.saved > kBitsOfSlack * slack_of(served) * sample.elems) set_slack(served, params);
}

}  // namespace quern::codec::lorenzo
