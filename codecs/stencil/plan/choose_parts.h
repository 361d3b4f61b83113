// Whether an array is coded in parts, and in which: decided by encoding.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/parts/parted_encoder.h"
#include "codecs/stencil/plan/plan.h"

namespace quern::codec::stencil {

struct ChosenParts {
  std::uint64_t chunk_slices = 1;
  Vector<PartEncoding> parts;
};

/// The parts that take fewer bytes than the array as a whole, `whole` being how that would be encoded; nothing where
/// none do. Each part is planned as an array by itself and encoded; neighbours whose cut is not sure are joined
/// again where that is smaller. Nothing, too, where not all of the array was encoded for `whole`, and where chunks of the
/// stream would have more than 2^22 values and more than those of the whole. Where memory is short, `whole` loses its
/// chunks. `memory_limit` where that is not enough. May throw std::bad_alloc.
Result<std::optional<ChosenParts>> choose_parts(const PlanRequest& request, const LayoutChoice& choice,
                                                const kernels::StencilKernels& kernels, ChosenLayout& whole);

/// Parts of so many slices each, whatever they take. `invalid_argument` where slices do not add up to the leading axis,
/// where axes of the choice do not fit a part, and where the sample does not hold all of the array.
Result<ChosenParts> take_parts(const PlanRequest& request, const LayoutChoice& choice,
                               const kernels::StencilKernels& kernels, std::span<const std::uint64_t> slices);

}  // namespace quern::codec::stencil
