// One-shot compression of an array in memory.
#include <new>

#include <quern/compress.h>

#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/bound_resolution.h"
#include "libcompress/pipeline/choose_codec.h"
#include "libcompress/pipeline/range.h"
#include "libcompress/pipeline/setup.h"
#include "libcompress/pipeline/target_search.h"
#include "libcompress/pipeline/trials.h"

namespace quern {
namespace {

Result<CompressReport> compress_checked(const ArrayView& array, const CompressOptions& options,
                                        const Registry& registry, const Execution& execution, ByteSink& sink) {
  RunnerHandle runner(execution);
  Trials trials(array, options, registry, execution, runner.get());
  if (options.bound.kind == BoundKind::psnr) return write_psnr(trials, sink);
  if (options.bound.kind == BoundKind::ratio) return write_ratio(trials, sink);
  std::optional<ExactRange> range = given_range(options);
  if (options.bound.kind == BoundKind::rel && !range) range = exact_range(array, options.fill_bits, runner.get());
  ResolvedBound bound = resolve_bound(options.bound, range);
  if (options.range) bound.range = options.range;
  QUERN_ASSIGN_OR_RETURN(const auto candidates, find_candidates(array.dtype, bound.enforced.kind, options, registry));
  return write_best(trials, candidates, bound, sink);
}

}  // namespace

Result<CompressReport> compress(const ArrayView& array, const CompressOptions& options, const Registry& registry,
                                const Execution& execution, ByteSink& sink) {
  QUERN_RETURN_IF_ERROR(check_options(array.dtype, options, registry));
  if (array.data == nullptr && array.elems() != 0)
    return Status(StatusCode::invalid_argument, "the array has no memory");
  try {
    return compress_checked(array, options, registry, execution, sink);
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "out of memory");
  }
}

}  // namespace quern
