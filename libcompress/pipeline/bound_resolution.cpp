// Bounds from requests and ranges.
#include "libcompress/pipeline/bound_resolution.h"

#include "libcompress/core/task_runner.h"

namespace quern {

std::optional<ExactRange> given_range(const CompressOptions& options) {
  if (!options.range) return std::nullopt;
  return ExactRange{*options.range, difference_down(options.range->max, options.range->min)};
}

EnforcedBound absolute_bound(double value) {
  if (value > 0) return {BoundKind::abs, value};
  return {};
}

ResolvedBound resolve_bound(const ErrorBound& bound, const std::optional<ExactRange>& range) {
  ResolvedBound out;
  switch (bound.kind) {
    case BoundKind::abs: out.enforced = absolute_bound(bound.value); break;
    case BoundKind::rel:
      if (range) {
        out.range = range->range;
        out.enforced = absolute_bound(product_down(bound.value, range->width_down));
      }
      break;
    case BoundKind::pwrel:
      if (bound.value > 0) out.enforced = {BoundKind::pwrel, bound.value};
      break;
    case BoundKind::lossless:
    case BoundKind::psnr:
    case BoundKind::ratio: break;
  }
  return out;
}

EnforcedBound enforced_bound(const ArrayView& array, const ErrorBound& bound, std::span<const std::uint64_t> fill_bits,
                             const Execution& execution) {
  if (bound.kind != BoundKind::rel) return resolve_bound(bound, std::nullopt).enforced;
  RunnerHandle runner(execution);
  return resolve_bound(bound, exact_range(array, fill_bits, runner.get())).enforced;
}

}  // namespace quern
