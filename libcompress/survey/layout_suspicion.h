// Signs of a wrong byte order or element type in the bytes of a file that does not say what it holds.
#pragma once

#include <quern/suspicions.h>

#include "libcompress/survey/sample_blocks.h"

namespace quern {

/// Adds at most one suspicion. Integer sums only: the result is the same on every machine.
void suspect_layout(DType dtype, const SampleBlocks& sample, Vector<Suspicion>& out);

}  // namespace quern
