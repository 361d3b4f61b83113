// What a user asks for: a kind of error bound and its value.
#pragma once

#include <cstdint>

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
  Status check(DType dtype) const;
};

/// The bound a codec works under, after `rel`, `psnr` and `ratio` were turned into numbers: abs, pwrel or lossless.
/// abs with value 0 means lossless.
struct EnforcedBound {
  BoundKind kind = BoundKind::lossless;
  double value = 0.0;
  friend bool operator==(const EnforcedBound&, const EnforcedBound&) = default;
};

}  // namespace quern
