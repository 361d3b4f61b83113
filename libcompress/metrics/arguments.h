// What the public functions ask of arrays and bounds, wherever the arrays lie.
#pragma once

#include <quern/array.h>
#include <quern/bound.h>
#include <quern/status.h>

#include "kernels/metrics/bound_verifier.h"

namespace quern::metrics {

/// Fails unless the arrays have the same known type and the same shape, and memory behind them.
inline Status check_comparable(const ArrayView& a, const ArrayView& b) {
  if (!is_known_dtype(static_cast<std::uint8_t>(a.dtype)))
    return Status(StatusCode::invalid_argument, "the array has an unknown element type");
  if (a.dtype != b.dtype) return Status(StatusCode::invalid_argument, "the two arrays have different element types");
  if (!(a.shape == b.shape)) return Status(StatusCode::invalid_shape, "the two arrays have different shapes");
  if (a.elems() != 0 && (a.data == nullptr || b.data == nullptr))
    return Status(StatusCode::invalid_argument, "an array with elements has no data");
  return {};
}

/// Fails unless a decoder can be held to the bound.
inline Status check_enforced(const EnforcedBound& bound, DType dtype) {
  QUERN_RETURN_IF_ERROR((ErrorBound{bound.kind, bound.value}.check(dtype)));
  if (bound.kind == BoundKind::lossless || bound.kind == BoundKind::abs || bound.kind == BoundKind::pwrel) return {};
  return Status(StatusCode::invalid_bound, "an enforced bound is abs, pwrel or lossless");
}

/// A checked bound as the verifier takes it.
inline verifier::Bound bound_to_verify(const EnforcedBound& bound) {
  switch (bound.kind) {
    case BoundKind::abs: return {verifier::BoundRule::absolute, bound.value};
    case BoundKind::pwrel: return {verifier::BoundRule::relative, bound.value};
    default: return {verifier::BoundRule::lossless, bound.value};
  }
}

}  // namespace quern::metrics
