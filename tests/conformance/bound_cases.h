// The bounds every codec is tried under.
#pragma once

#include <vector>

#include <quern/bound.h>

namespace quern::testing {

struct BoundCase {
  const char* name;
  ErrorBound bound;
};

/// Bounds that make sense for an array; absolute ones scaled to its data.
inline std::vector<BoundCase> bounds_for(DType dtype) {
  const double unit = is_float(dtype) ? 0.1 : 2.0;
  std::vector<BoundCase> cases{{"abs", {BoundKind::abs, unit}},       {"abs 0", {BoundKind::abs, 0.0}},
                               {"abs tiny", {BoundKind::abs, 1e-42}}, {"abs huge", {BoundKind::abs, 1e300}},
                               {"rel", {BoundKind::rel, 1e-3}},       {"lossless", {BoundKind::lossless, 0.0}}};
  if (is_float(dtype)) {
    cases.push_back({"pwrel", {BoundKind::pwrel, 1e-2}});
    cases.push_back({"pwrel tiny", {BoundKind::pwrel, 1e-9}});
  }
  return cases;
}

}  // namespace quern::testing
