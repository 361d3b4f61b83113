// Which axes to merge, decided by fitting and coding a box of the sample under every layout.
#pragma once

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/rules.h"
#include "kernels/cpu/stencil.h"

namespace quern::codec::stencil {

/// Every layout of a shape; those whose merged extents come out equal appear once.
Vector<Layout> all_layouts(const Shape& shape);

/// The layout of the fewest estimated bits an element; ties to the lower index. May throw std::bad_alloc.
Result<Layout> choose_layout(const PlanRequest& request, const kernels::StencilKernels& kernels);

}  // namespace quern::codec::stencil
