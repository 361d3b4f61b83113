// By what bound and search the kernels' rules for masks are made. Host and device code use it alike.
#pragma once

#include <quern/bound.h>

#include "kernels/mask/find.h"

namespace quern::mask {

constexpr kernels::QuantizerKind quantizer_of(BoundKind kind) {
  if (kind == BoundKind::lossless) return kernels::QuantizerKind::exact;
  return kind == BoundKind::pwrel ? kernels::QuantizerKind::pointwise : kernels::QuantizerKind::absolute;
}

/// Whether a segment can have a mask at all.
constexpr bool may_have_mask(DType dtype, std::size_t fill_values, bool find_repeated) {
  return is_float(dtype) || fill_values > 0 || find_repeated;
}

/// W: the element type's words (kernels/mask/words.h).
template <class W>
constexpr kernels::RepeatedRules repeated_rules(bool enabled, const EnforcedBound& bound) {
  return {enabled, kernels::make_cost_scale<W>(quantizer_of(bound.kind), bound.value)};
}

}  // namespace quern::mask
