// Whether groups that are not linear pay for an array in levels: measured, never taken for granted.
#pragma once

#include <quern/codec.h>
#include <quern/status.h>

#include "codecs/stencil/plan/plan.h"
#include "kernels/stencil/cpu/stencil.h"

namespace quern::codec::stencil {

/// Lets the chunks of a layout in levels have groups that are not linear where a sample block is smaller with them; and,
/// where the choice of the layout encoded all chunks, only where all of them together are, too. Not where speed or a
/// PSNR is asked for. May throw std::bad_alloc.
Status try_edges(const PlanRequest& request, FittedParts parts, const kernels::StencilKernels& kernels,
                 ChosenLayout& chosen);

}  // namespace quern::codec::stencil
