// A small array that stands for a large one where trials on all of it would take too long.
#pragma once

#include <cstdint>

#include <quern/array.h>
#include <quern/status.h>

#include "libcompress/core/buffer.h"

namespace quern {

/// Four runs of neighbouring planes (or rows, or elements) from all over the array, one behind the other.
struct SampleArray {
  AlignedBuffer memory;
  ArrayView view;
};
/// About `elems` elements of an array that has at least that many. The shape keeps as many trailing axes as fit.
Result<SampleArray> make_sample_array(const ArrayView& array, std::uint64_t elems);

/// The leading part of an array, where it lies: whole planes, rows or elements, at most `elems` elements but one of
/// them at least.
Result<ArrayView> leading_part(const ArrayView& array, std::uint64_t elems);

}  // namespace quern
