// Work in fixed blocks, results folded in order: what comes out does not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <quern/execution.h>
#include <quern/memory.h>

#include "libcompress/core/run_tasks.h"

namespace quern::metrics {

/// Elements of a block. Fixed: it decides how sums are grouped.
inline constexpr std::uint64_t kBlockElems = UINT64_C(1) << 16;
/// Blocks between two calls of the progress callback, and the number of results held at a time.
inline constexpr std::uint64_t kRoundBlocks = 128;

/// Adds up progress over several passes and asks whether to go on.
class Progress {
 public:
  Progress(const ProgressCallback& callback, std::uint64_t total) : callback_(callback), total_(total) {}

  Status advance(std::uint64_t elems) {
    done_ = std::min(done_ + elems, total_);
    if (callback_ && !callback_(done_, total_)) return Status(StatusCode::cancelled, "cancelled by the caller");
    return {};
  }

 private:
  const ProgressCallback& callback_;
  std::uint64_t total_ = 0;
  std::uint64_t done_ = 0;
};

/// Calls `body(index, result)` for every index below `blocks` on the runner, each with a fresh Result, then
/// `fold(result)` on this thread in the order of the indices. `elems_per_block` is for progress alone. `body` throws
/// nothing but std::bad_alloc, which ends as out_of_memory.
template <class BlockResult, class Body, class Fold>
Status for_blocks(std::uint64_t blocks, std::uint64_t elems_per_block, TaskRunner& runner, Progress& progress,
                  const Body& body, const Fold& fold) {
  Vector<BlockResult> results;
  for (std::uint64_t first = 0; first < blocks; first += kRoundBlocks) {
    const std::uint64_t count = std::min(kRoundBlocks, blocks - first);
    results.assign(count, BlockResult{});
    QUERN_RETURN_IF_ERROR(run_tasks(runner, count, [&](std::size_t i) {
      body(first + i, results[i]);
      return Status();
    }));
    for (const BlockResult& result : results) fold(result);
    QUERN_RETURN_IF_ERROR(progress.advance(count * elems_per_block));
  }
  return {};
}

constexpr std::uint64_t block_count(std::uint64_t elems) { return (elems + kBlockElems - 1) / kBlockElems; }

}  // namespace quern::metrics
