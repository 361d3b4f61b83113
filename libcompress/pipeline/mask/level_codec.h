// Masks coded by levels (docs/format-mask.md, section 10): a form whose symbols many lanes can code side by side.
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

/// Appends it behind the view that suits the mask best. As encode_mask does; the mask is known to fit the extents.
Status encode_levels(const SegmentMask& mask, const Extents& extents, Views views, DType dtype,
                     Vector<std::uint8_t>& out);

/// About how many bytes that takes, without coding: from edges of the mask, on bits. O(cells / 64) for each view, and
/// O(cells) where a mask has several classes.
std::uint64_t estimate_levels(std::span<const std::uint8_t> classes, std::size_t specials, const Extents& extents,
                              Views views, DType dtype);

/// What decode_levels allocates at most for those planes. Rows of few cells take more of it a cell.
std::uint64_t level_decode_bytes(const kernels::MaskPlanes& planes);
/// And for planes of a box, or any view of them.
std::uint64_t most_level_decode_bytes(const kernels::MaskPlanes& own);

/// Reads what encode_levels wrote. `in` is hostile: fails with `corrupt`, `truncated` or `trailing_data` unless every
/// byte is used; never allocates more than `max_bytes` (fails with `memory_limit`). O(cells + bytes).
Result<SegmentMask> decode_levels(std::span<const std::uint8_t> in, const kernels::MaskPlanes& planes, DType dtype,
                                  std::uint64_t max_bytes);

}  // namespace quern::mask
