// A small array that stands for a large one where trials on all of it would take too long.
#pragma once

#include <cstdint>

#include <quern/array.h>
#include <quern/status.h>

#include "libcompress/core/buffer.h"

namespace quern {

/// Four boxes from all over the array, one behind the other along their longest axis.
struct SampleArray {
  AlignedBuffer memory;
  ArrayView view;
};
/// At most `elems` elements (four at least) of an array that has at least that many.
Result<SampleArray> make_sample_array(const ArrayView& array, std::uint64_t elems);

/// The leading part of an array, where it lies: whole planes, rows or elements, at most `elems` elements but one of
/// them at least.
Result<ArrayView> leading_part(const ArrayView& array, std::uint64_t elems);

}  // namespace quern
