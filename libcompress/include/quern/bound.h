// What a user asks for: a kind of error bound and its value.
#pragma once

#include <cstdint>
#include <limits>

#include <quern/dtype.h>
#include <quern/status.h>

namespace quern {

/// The numeric values are stored in streams.
enum class BoundKind : std::uint8_t {
  lossless = 0,  ///< every bit comes back
  abs = 1,       ///< |x - x'| <= value
  rel = 2,       ///< |x - x'| <= value * (max - min) over valid values
  pwrel = 3,     ///< |x - x'| <= value * |x|, 0 comes back as 0; floating-point types only, value < 1
  psnr = 4,      ///< measured PSNR over valid values >= value dB
  ratio = 5,     ///< raw bytes / stream bytes >= value; the smallest bound found by search
};

/// "abs", "rel", ...
const char* bound_kind_name(BoundKind kind);

struct ErrorBound {
  BoundKind kind = BoundKind::lossless;
  double value = 0.0;

  /// Fails on NaN, negative or infinite values, and on kinds that do not fit the element type.
  constexpr Status check(DType dtype) const {
    constexpr double kLargest = std::numeric_limits<double>::max();
    if (kind == BoundKind::lossless) return {};
    if (value != value) return Status(StatusCode::invalid_bound, "the bound is not a number");
    if (value > kLargest || value < -kLargest)
      return Status(StatusCode::invalid_bound, "the bound is infinite; give a finite number");
    if (value < 0) return Status(StatusCode::invalid_bound, "the bound is negative; give 0 or more");
    if (kind == BoundKind::pwrel) {
      if (is_integer(dtype))
        return Status(StatusCode::invalid_bound,
                      "a point-wise relative bound needs a floating-point type; use abs or rel for integers");
      if (value >= 1) return Status(StatusCode::invalid_bound, "a point-wise relative bound must be below 1");
    }
    if (kind == BoundKind::ratio && value < 1) return Status(StatusCode::invalid_bound, "the ratio must be at least 1");
    return {};
  }
};

/// The bound a codec works under, after `rel`, `psnr` and `ratio` were turned into numbers: abs, pwrel or lossless.
/// abs with value 0 means lossless.
struct EnforcedBound {
  BoundKind kind = BoundKind::lossless;
  double value = 0.0;
  friend bool operator==(const EnforcedBound&, const EnforcedBound&) = default;
};

}  // namespace quern
