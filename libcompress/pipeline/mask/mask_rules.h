// By what bound and search the kernels' rules for masks are made. Host and device code use it alike.
#pragma once

#include <quern/bound.h>

#include "kernels/mask/find.h"

namespace quern::mask {

constexpr kernels::QuantizerKind quantizer_of(BoundKind kind) {
  if (kind == BoundKind::lossless) return kernels::QuantizerKind::exact;
  return kind == BoundKind::pwrel ? kernels::QuantizerKind::pointwise : kernels::QuantizerKind::absolute;
}

/// W: the element type's words (kernels/mask/words.h).
template <class W>
constexpr kernels::RepeatedRules repeated_rules(bool enabled, const EnforcedBound& bound) {
  return {enabled, kernels::make_cost_scale<W>(quantizer_of(bound.kind), bound.value)};
}

}  // namespace quern::mask
