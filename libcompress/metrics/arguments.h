// What both public functions ask of the two arrays they are given.
#pragma once

#include <quern/array.h>
#include <quern/status.h>

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

}  // namespace quern::metrics
