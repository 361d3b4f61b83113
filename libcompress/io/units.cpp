// Bounds and ranges in the units of the file's values, turned into those of its stored numbers.
#include <cmath>
#include <limits>

#include <quern/io.h>

#include "libcompress/core/rounding.h"
#include "libcompress/io/error.h"

namespace quern::io {
namespace {

/// The largest finite q with q * divisor <= value, for value >= 0 and a positive finite divisor.
double quotient_down(double value, double divisor) {
  if (value == 0) return 0;
  // Digits apart from exponents: then no product is too small or too large for its error to be seen.
  int value_exponent = 0, divisor_exponent = 0;
  const double v = std::frexp(value, &value_exponent);
  const double d = std::frexp(divisor, &divisor_exponent);
  double q = v / d;
  // The sign of a fused multiply-add is that of the exact difference.
  while (std::fma(q, d, -v) > 0) q = next_down(q);
  const int exponent = value_exponent - divisor_exponent;
  const double out = std::ldexp(q, exponent);
  if (std::isinf(out)) return std::numeric_limits<double>::max();
  // Very small results have fewer digits and were rounded to nearest.
  return std::ldexp(out, -exponent) > q ? next_down(out) : out;
}

}  // namespace

Result<ErrorBound> stored_bound(const ErrorBound& bound, const ArrayMeta& meta, std::string& detail) {
  if (!meta.packed) return bound;
  const double scale = std::fabs(meta.scale_factor);
  if (!std::isfinite(scale) || scale == 0)
    return fail(detail, StatusCode::invalid_bound,
                "its scale_factor is " + std::to_string(meta.scale_factor) +
                    ", so a bound in physical units means nothing; use --lossless");
  // A scale without an offset changes no quotient.
  if (bound.kind == BoundKind::pwrel && meta.add_offset != 0)
    return fail(detail, StatusCode::invalid_bound,
                "it is packed with add_offset, and --pwrel cannot hold for the physical values; use --abs (physical "
                "units) or --rel");
  if (bound.kind != BoundKind::abs || !(bound.value > 0)) return bound;
  const double stored = quotient_down(bound.value, scale);
  return ErrorBound{BoundKind::abs, is_integer(meta.dtype) ? std::floor(stored) : stored};
}

void stored_range(const ArrayMeta& meta, double& min, double& max) {
  if (!meta.packed) return;
  const double width = quotient_down(difference_down(max, min), std::fabs(meta.scale_factor));
  min = ((meta.scale_factor > 0 ? min : max) - meta.add_offset) / meta.scale_factor;
  max = min + width;
  while (max > min && max - min > width) max = next_down(max);
}

}  // namespace quern::io
