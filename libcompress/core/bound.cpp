// Names of kinds of bounds.
#include <quern/bound.h>

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

}  // namespace quern
