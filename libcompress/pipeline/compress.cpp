// One-shot compression of an array in memory.
#include <cstring>
#include <new>

#include <quern/compress.h>

#include "libcompress/core/buffer.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/bound_resolution.h"
#include "libcompress/pipeline/choose_codec.h"
#include "libcompress/pipeline/prequantize.h"
#include "libcompress/pipeline/range.h"
#include "libcompress/pipeline/setup.h"
#include "libcompress/pipeline/target_search.h"
#include "libcompress/pipeline/trials.h"

namespace quern {
namespace {

/// Compresses a prequantized copy, which counts towards the memory limit.
Result<CompressReport> compress_idempotent(const ArrayView& array, const CompressOptions& options,
                                           const Registry& registry, const Execution& execution, TaskRunner& runner,
                                           ByteSink& sink) {
  ResolvedBound bound = resolve_bound(options.bound, given_range(options));
  if (options.range) bound.range = options.range;
  const std::uint64_t bytes = array.bytes();
  if (bytes > execution.memory_limit)
    return Status(StatusCode::memory_limit, "idempotent=1 needs {0} bytes at least; the limit is {1}",
                  static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(execution.memory_limit));
  AlignedBuffer copy;
  QUERN_RETURN_IF_ERROR(copy.resize(bytes));
  if (bytes != 0) std::memcpy(copy.data(), array.data, bytes);
  QUERN_RETURN_IF_ERROR(
      prequantize(array.dtype, bound.enforced, options.fill_bits, copy.data(), array.elems(), runner));
  Execution rest = execution;
  rest.memory_limit = execution.memory_limit - bytes;
  const ArrayView prequantized{copy.data(), array.dtype, array.shape};
  Trials trials(prequantized, options, registry, rest, runner);
  QUERN_ASSIGN_OR_RETURN(const auto candidates, find_candidates(array.dtype, bound.enforced.kind, options, registry));
  return write_best(trials, candidates, bound, sink);
}

Result<CompressReport> compress_checked(const ArrayView& array, const CompressOptions& options,
                                        const Registry& registry, const Execution& execution, ByteSink& sink) {
  RunnerHandle runner(execution);
  if (options.idempotent && options.bound.kind != BoundKind::lossless)
    return compress_idempotent(array, options, registry, execution, runner.get(), sink);
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
