// The looks at an array, in the order in which they make sense.
#include <quern/suspicions.h>

#include <new>

#include "libcompress/survey/fill_suspicion.h"
#include "libcompress/survey/layout_suspicion.h"

namespace quern {

Result<Vector<Suspicion>> find_suspicions(const ArrayView& array, std::span<const std::uint64_t> fill_bits,
                                          SuspicionScope scope) {
  try {
    Vector<Suspicion> out;
    if (array.elems() == 0) return out;
    const SampleBlocks sample(array);
    if (scope == SuspicionScope::values_and_layout) suspect_layout(array.dtype, sample, out);
    // Values of a wrong type or order say nothing.
    if (out.empty()) suspect_fill_values(array.dtype, sample, fill_bits, out);
    return out;
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::out_of_memory, "memory ran out while an array was looked at");
  }
}

}  // namespace quern
