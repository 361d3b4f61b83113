// From an element type and an enforced bound to the parameters of its quantizer (kernels/common/quantize.h). One
// function for every codec: what codes stand for depends on type and bound alone. constexpr, for host and device code
// alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include <quern/bound.h>
#include <quern/dtype.h>

#include "kernels/common/quantizers.h"
#include "libcompress/core/rounding.h"

namespace quern {

constexpr unsigned fraction_bits(DType dtype) {
  switch (dtype) {
    case DType::f16: return 10;
    case DType::bf16: return 7;
    case DType::f32: return 23;
    default: return 52;
  }
}

/// Largest number of the unsigned word that codes of integers and keys are computed in.
constexpr std::uint64_t largest_word(DType dtype) {
  return dtype_bytes(dtype) == 8 ? ~UINT64_C(0) : UINT64_C(0xffffffff);
}
/// Largest half-width whose step 2*half + 1 fits the word.
constexpr std::uint64_t largest_half(DType dtype) { return largest_word(dtype) >> 1; }

/// Largest number of type F that is not above `bound`.
template <class F>
constexpr F round_down(double bound) {
  const F f = static_cast<F>(bound);
  return static_cast<double>(f) > bound ? next_toward_zero(f) : f;
}

/// Step 2E and its reciprocal in the working type; false when there is no usable step.
template <class F>
constexpr bool set_float_step(double bound, kernels::QuantizerParams& params) {
  const F largest_error = std::min(round_down<F>(bound), std::numeric_limits<F>::max() / 2);
  const F step = 2 * largest_error;
  if (!(step > 0)) return false;
  const F reciprocal = 1 / step;
  if (!is_finite(reciprocal)) return false;
  params.bound = bound;
  params.strict = largest_error;
  params.step = step;
  params.reciprocal = reciprocal;
  return true;
}

/// Whether a stored number can be the step of this floating-point type: one of its working type.
constexpr bool is_float_step(DType dtype, double step) {
  const bool in_type = dtype == DType::f64 || static_cast<double>(static_cast<float>(step)) == step;
  return step > 0 && is_finite(step) && in_type;
}

constexpr void set_int_step(std::uint64_t half, DType dtype, kernels::QuantizerParams& params) {
  params.int_half = half;
  params.int_step = 2 * half + 1;
  params.int_reciprocal = largest_word(dtype) / params.int_step;
}

constexpr std::uint64_t floor_to_u64(double v) { return v >= 0x1p63 ? ~UINT64_C(0) : static_cast<std::uint64_t>(v); }

struct QuantizerRules {
  kernels::QuantizerKind kind = kernels::QuantizerKind::exact;
  kernels::QuantizerParams params;
};

/// Step, reciprocal and the largest error, all rounded so that the bound cannot be missed. Exact codes where the
/// working type has no step (bound 0, lossless, below the smallest number).
constexpr QuantizerRules quantizer_rules(DType dtype, const EnforcedBound& bound) {
  using kernels::QuantizerKind;
  QuantizerRules rules;
  if (bound.kind == BoundKind::pwrel) {
    rules.kind = QuantizerKind::pointwise;
    const auto scale = static_cast<double>(UINT64_C(1) << fraction_bits(dtype));
    set_int_step(floor_to_u64(bound.value * scale), dtype, rules.params);
  } else if (bound.kind == BoundKind::abs && is_integer(dtype)) {
    rules.kind = QuantizerKind::absolute;
    set_int_step(std::min(floor_to_u64(bound.value), largest_half(dtype)), dtype, rules.params);
  } else if (bound.kind == BoundKind::abs) {
    const bool usable = dtype == DType::f64 ? set_float_step<double>(bound.value, rules.params)
                                            : set_float_step<float>(bound.value, rules.params);
    if (usable) rules.kind = QuantizerKind::absolute;
  }
  return rules;
}

}  // namespace quern
