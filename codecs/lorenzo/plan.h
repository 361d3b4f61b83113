// Choosing, on a fixed sample, which axes to merge and which predictors an encoder tries.
#pragma once

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/lorenzo/rules.h"
#include "kernels/lorenzo/cpu/lorenzo.h"

namespace quern::codec::lorenzo {

struct Choice {
  Layout layout;
  kernels::ChunkRules rules;  ///< with candidates
};

/// Looks at every layout (or the forced one) on at most 64 tiles from all over the sample: candidates are added while
/// each saves at least one estimated byte in 128; then the tiles are encoded, and the layout of the fewest bytes an
/// element is taken, leaving out those of more than request.max_chunks chunks. Integer arithmetic, ties to the lower
/// index. O(layouts * 64 * 1024). May throw std::bad_alloc.
Result<Choice> choose(const PlanRequest& request, const Layout* forced, const kernels::LorenzoKernels& kernels);

/// Every layout of a shape: 1-D, then 2-D and 3-D by split positions; grids that come out equal appear once.
Vector<Layout> all_layouts(const Shape& shape);

}  // namespace quern::codec::lorenzo
