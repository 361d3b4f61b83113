// One-shot compression of an array in memory.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include <quern/compress.h>

#include "kernels/mask/find.h"
#include "libcompress/core/buffer.h"
#include "libcompress/core/run_tasks.h"
#include "libcompress/core/task_runner.h"
#include "libcompress/pipeline/encode/bound_resolution.h"
#include "libcompress/pipeline/encode/prequantize.h"
#include "libcompress/pipeline/encode/setup.h"
#include "libcompress/pipeline/mask/mask.h"
#include "libcompress/pipeline/range.h"
#include "libcompress/pipeline/search/choose_codec.h"
#include "libcompress/pipeline/search/target_search.h"
#include "libcompress/pipeline/search/trials.h"

namespace quern {
namespace {

/// Whether values may be repeated in an array before prequantization, which makes neighbours equal everywhere: then a
/// search for values that pay a mask is worth its time.
Result<bool> may_repeat_values(const ArrayView& array, std::span<const std::uint64_t> fill_bits, TaskRunner& runner) {
  constexpr std::uint64_t kPieceElems = UINT64_C(1) << 18;
  const auto pieces = static_cast<std::size_t>((array.elems() + kPieceElems - 1) / kPieceElems);
  std::atomic<bool> found{false};
  QUERN_RETURN_IF_ERROR(run_tasks(runner, pieces, [&](std::size_t piece) -> Status {
    const std::uint64_t first = piece * kPieceElems;
    const std::uint64_t elems = std::min(kPieceElems, array.elems() - first);
    const auto* const data = static_cast<const std::uint8_t*>(array.data) + first * dtype_bytes(array.dtype);
    QUERN_ASSIGN_OR_RETURN(const kernels::ScanCounts counts,
                           mask::scan({data, {1, 1, elems}, {elems, elems}}, array.dtype, fill_bits));
    if (kernels::may_have_repeated({true, {}}, counts, elems) || counts.negative_zeros >= kernels::kFewMinusZeros)
      found = true;
    return {};
  }));
  return found.load();
}

Result<CompressReport> counted(Result<CompressReport> made, const Trials& trials) {
  if (made.ok()) {
    made->encodings = trials.encodings();
    made->sample_encodings = trials.sample_encodings();
  }
  return made;
}

/// At the highest effort each candidate once more for each of its alternatives.
Vector<Candidate> with_alternatives(const Vector<Candidate>& candidates, const CompressOptions& options,
                                    const Shape& shape) {
  constexpr unsigned kHighestEffort = 9;
  if (options.effort < kHighestEffort || options.goal != "ratio") return candidates;
  Vector<Candidate> all;
  for (const Candidate& candidate : candidates) {
    all.push_back(candidate);
    for (Candidate& alternative : alternatives_of(candidate, options, shape))
      if (!alternative.alternative.empty()) all.push_back(std::move(alternative));
  }
  return all;
}

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
  CompressOptions rest_options = options;
  if (options.find_repeated) {
    QUERN_ASSIGN_OR_RETURN(rest_options.find_repeated, may_repeat_values(array, options.fill_bits, runner));
  }
  const ArrayView prequantized{copy.data(), array.dtype, array.shape};
  Trials trials(prequantized, rest_options, registry, rest, runner);
  QUERN_ASSIGN_OR_RETURN(const auto candidates,
                         find_candidates(array.dtype, bound.enforced.kind, rest_options, registry));
  return counted(write_best(trials, with_alternatives(candidates, rest_options, array.shape), bound, sink), trials);
}

Result<CompressReport> compress_checked(const ArrayView& array, const CompressOptions& options,
                                        const Registry& registry, const Execution& execution, ByteSink& sink) {
  RunnerHandle runner(execution);
  if (options.idempotent && options.bound.kind != BoundKind::lossless)
    return compress_idempotent(array, options, registry, execution, runner.get(), sink);
  Trials trials(array, options, registry, execution, runner.get());
  if (options.bound.kind == BoundKind::psnr) return counted(write_psnr(trials, sink), trials);
  if (options.bound.kind == BoundKind::ratio) return counted(write_ratio(trials, sink), trials);
  std::optional<ExactRange> range = given_range(options);
  if (options.bound.kind == BoundKind::rel && !range) range = exact_range(array, options.fill_bits, runner.get());
  ResolvedBound bound = resolve_bound(options.bound, range);
  if (options.range) bound.range = options.range;
  QUERN_ASSIGN_OR_RETURN(const auto candidates, find_candidates(array.dtype, bound.enforced.kind, options, registry));
  return counted(write_best(trials, with_alternatives(candidates, options, array.shape), bound, sink), trials);
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
