// Choosing, on boxes from all over the sample, tiles, merged axes, and how each class of points is predicted.
#pragma once

#include <optional>

#include <quern/codec.h>
#include <quern/status.h>

#include "codecs/interp/chunk.h"
#include "codecs/interp/rules.h"

namespace quern::codec::interp {

struct Choice {
  Layout layout;
  Predictors predictors{};
};

/// Tries every layout of the shape, or the given one: for each class, level after level, every predictor is held
/// against the boxes in the closed loop, and the cheapest one codes them; the layout of the fewest estimated bits an
/// element is taken; where its codes do not reach all elements, smaller tiles are tried, too. Integer costs, ties to the
/// lower index. May throw std::bad_alloc.
Result<Choice> choose(const PlanRequest& request, const std::optional<Layout>& given,
                      const kernels::InterpKernels& kernels, const kernels::ResidualKernels& residuals);

/// What may be chosen for a shape. Grids and tiles that come out alike appear once.
Vector<Layout> all_layouts(const Shape& shape);

}  // namespace quern::codec::interp
