// The smallest lossless mode for a tensor.
#pragma once

#include "codecs/tensor/mode_coder.h"

namespace quern::codec::tensor {

/// Fills mode and side of a plan.
Status plan_best_lossless(const TensorInputs& inputs, TaskRunner& runner, TensorPlan& plan);

}  // namespace quern::codec::tensor
