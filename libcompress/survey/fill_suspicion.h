// Undeclared fill values among the smallest and largest values of an array.
#pragma once

#include <span>

#include <quern/suspicions.h>

#include "libcompress/survey/sample_blocks.h"

namespace quern {

/// Adds a suspicion for each value that is repeated and lies far outside all values that are not.
void suspect_fill_values(DType dtype, const SampleBlocks& sample, std::span<const std::uint64_t> fill_bits,
                         Vector<Suspicion>& out);

}  // namespace quern
