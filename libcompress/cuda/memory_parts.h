// Parts of a piece of memory, one after another, as programs and what they work on want them aligned.
#pragma once

#include <cstdint>

#include "kernels/common/job_task.h"

namespace quern::cuda {

struct MemoryParts {
  std::uint64_t bytes = 0;
  /// Where a part of that many bytes begins.
  std::uint64_t add(std::uint64_t count) {
    const std::uint64_t at = bytes;
    bytes += kernels::program_aligned(count);
    return at;
  }
};

}  // namespace quern::cuda
