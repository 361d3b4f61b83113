// Prequantization (Tian et al., cuSZ, PACT 2020, section 3.1): each element becomes what its code stands for, before
// any prediction. The result depends on the element, its type and the bound alone, and prequantizing it again changes
// nothing: a stream of prequantized elements can be decoded, mixed with others and coded again under the same bound
// without a further error.
#pragma once

#include <cstdint>
#include <span>

#include <quern/bound.h>
#include <quern/dtype.h>
#include <quern/execution.h>
#include <quern/status.h>

namespace quern {

/// Replaces `elems` elements at `data` (host memory, aligned to anything). NaN, infinities, -0, elements equal to a
/// declared fill value, and elements that no code brings back within the bound stay as they are. Nothing changes under
/// a lossless bound. O(elems); runs blocks on `runner`.
Status prequantize(DType dtype, const EnforcedBound& bound, std::span<const std::uint64_t> fill_bits,
                   std::uint8_t* data, std::uint64_t elems, TaskRunner& runner);

}  // namespace quern
