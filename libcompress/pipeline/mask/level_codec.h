// Masks coded by levels (docs/format-mask.md, section 10): a form whose symbols many lanes can code side by side. No
// stream holds it yet: writers write the form of sections 1 to 8.
#pragma once

#include <cstdint>
#include <span>

#include <quern/dtype.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "kernels/mask/view.h"
#include "libcompress/pipeline/mask/mask.h"

namespace quern::mask {

/// Appends the form by levels of a mask that is not empty, in those planes. Fails (`invalid_argument`) when mask and
/// planes do not fit each other. O(cells).
Status encode_levels(const SegmentMask& mask, const kernels::MaskPlanes& planes, DType dtype,
                     Vector<std::uint8_t>& out);

/// What decode_levels allocates at most for that many cells.
std::uint64_t level_decode_bytes(std::uint64_t cells);

/// Reads what encode_levels wrote. `in` is hostile: fails with `corrupt`, `truncated` or `trailing_data` unless every
/// byte is used; never allocates more than `max_bytes` (fails with `memory_limit`). O(cells + bytes).
Result<SegmentMask> decode_levels(std::span<const std::uint8_t> in, const kernels::MaskPlanes& planes, DType dtype,
                                  std::uint64_t max_bytes);

}  // namespace quern::mask
