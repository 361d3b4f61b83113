// Which error bounds make sense for which element types.
#include <quern/bound.h>

#include <cmath>

namespace quern {

const char* bound_kind_name(BoundKind kind) {
  switch (kind) {
    case BoundKind::lossless: return "lossless";
    case BoundKind::abs: return "abs";
    case BoundKind::rel: return "rel";
    case BoundKind::pwrel: return "pwrel";
    case BoundKind::psnr: return "psnr";
    case BoundKind::ratio: return "ratio";
  }
  return "unknown";
}

Status ErrorBound::check(DType dtype) const {
  if (kind == BoundKind::lossless) return {};
  if (std::isnan(value)) return Status(StatusCode::invalid_bound, "the bound is not a number");
  if (std::isinf(value)) return Status(StatusCode::invalid_bound, "the bound is infinite; give a finite number");
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

}  // namespace quern
