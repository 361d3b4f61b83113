// The looks at an array, in the order in which they make sense.
#include <quern/suspicions.h>

#include <new>

#include "libcompress/survey/fill_suspicion.h"
#include "libcompress/survey/layout_suspicion.h"

namespace quern {
namespace {

constexpr std::uint64_t kLayoutElems = UINT64_C(1) << 16;

}  // namespace

Result<Vector<Suspicion>> find_suspicions(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                          SuspicionScope scope) {
  try {
    Vector<Suspicion> out;
    if (array.elems() == 0) return out;
    // A wrong layout shows in every block, a fill value perhaps in few.
    if (scope == SuspicionScope::values_and_layout)
      suspect_layout(array.dtype, SampleBlocks(array, kLayoutElems, kLayoutElems), out);
    // Values of a wrong type or order say nothing.
    if (out.empty()) suspect_fill_values(array.dtype, SampleBlocks(array), fill_bits, out);
    return out;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "memory ran out while an array was looked at");
  }
}

}  // namespace quern
