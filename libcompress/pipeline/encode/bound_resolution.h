// Turns what a user asked for into the bound a codec works under.
#pragma once

#include <optional>

#include <quern/bound.h>
#include <quern/compress.h>

#include "libcompress/core/rounding.h"
#include "libcompress/pipeline/exact_range.h"

namespace quern {

/// The bound a stream is written under.
struct ResolvedBound {
  EnforcedBound enforced;
  std::optional<ValueRange> range;
  bool all_ordinary = false;  ///< as in ExactRange
};

/// Range of a request that gives one, as if it had been measured.
std::optional<ExactRange> given_range(const CompressOptions& options);

/// abs with a value; lossless when the value is 0.
constexpr EnforcedBound absolute_bound(double value) {
  if (value > 0) return {BoundKind::abs, value};
  return {};
}

/// For every kind but psnr and ratio. `range` is needed for rel only; without a valid value, rel means lossless. Host
/// and device code use it alike.
constexpr ResolvedBound resolve_bound(const ErrorBound& bound, const std::optional<ExactRange>& range) {
  switch (bound.kind) {
    case BoundKind::abs: return {absolute_bound(bound.value), {}, false};
    case BoundKind::rel:
      if (range) {
        return {absolute_bound(product_down(bound.value, range->width_down)), range->range, range->all_ordinary};
      }
      break;
    case BoundKind::pwrel:
      if (bound.value > 0) return {{BoundKind::pwrel, bound.value}, {}, false};
      break;
    case BoundKind::lossless:
    case BoundKind::psnr:
    case BoundKind::ratio: break;
  }
  return {};
}

}  // namespace quern
