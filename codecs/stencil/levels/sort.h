// The elements of a chunk in the order of coding. Rows of a level skip what others have in between: memory would fetch
// all of it for each of them, one short piece after another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codecs/stencil/levels/view.h"

namespace quern::codec::stencil {

/// Memory for all elements of a chunk whose elements have 4 bytes.
struct SortedElements {
  std::uint32_t* coarser = nullptr;  ///< all but the finest level's; null: elements are not sorted
  std::uint32_t* finest = nullptr;
  std::uint32_t* row = nullptr;  ///< room for one of the box
};

/// False when rows are not side by side, or the order of coding goes plane by plane.
bool can_sort(const LevelsView& view);
/// Fills `to` from the box whose first element is `from`; see can_sort. O(elements).
void sort_elements(const LevelsView& view, const std::uint32_t* from, const SortedElements& to);

}  // namespace quern::codec::stencil
