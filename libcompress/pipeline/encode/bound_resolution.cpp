// Bounds from requests and ranges.
#include "libcompress/pipeline/encode/bound_resolution.h"

#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/range.h"

namespace quern {

std::optional<ExactRange> given_range(const CompressOptions& options) {
  if (!options.range) return std::nullopt;
  return ExactRange{*options.range, difference_down(options.range->max, options.range->min)};
}

EnforcedBound enforced_bound(const ArrayView& array, const ErrorBound& bound, std::span<const std::uint64_t> fill_bits,
                             const Execution& execution) {
  if (bound.kind != BoundKind::rel) return resolve_bound(bound, std::nullopt).enforced;
  RunnerHandle runner(execution);
  return resolve_bound(bound, exact_range(array, fill_bits, runner.get())).enforced;
}

EnforcedBound enforced_bound(const ErrorBound& bound, const ValueRange& range) {
  return resolve_bound(bound, ExactRange{range, difference_down(range.max, range.min)}).enforced;
}

}  // namespace quern
