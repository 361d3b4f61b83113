// Whether decoded values keep the bound of their mode: the last word before a tensor is stored, by code that shares
// nothing with the encoders but the definition of the bound.
#pragma once

#include <quern/execution.h>

#include "checkpoint/safetensors/element_names.h"
#include "codecs/tensor/tensor.h"

namespace quern::checkpoint {

using codec::tensor::Mode;

struct BoundCheck {
  bool kept = true;
  double worst = 0;           ///< in the unit of the mode's bound; 0 for modes without one
  double worst_absolute = 0;  ///< |decoded - value| over finite elements, in binary64
};

/// True for the modes that may lose something.
bool is_lossy(Mode mode);

/// `values` and `decoded` are binary32 of the same size; `companion` the decoded second moments of updq. The bound of
/// ebq is absolute. Whatever the bound, what is not finite must come back bit for bit, and positive numbers of logq
/// stay positive. Modes without a bound are checked for that alone.
BoundCheck check_bound(Mode mode, double bound, std::span<const std::uint8_t> values,
                       std::span<const std::uint8_t> decoded, std::span<const std::uint8_t> companion,
                       TaskRunner& runner);

}  // namespace quern::checkpoint
