// The range of an array's valid values as numbers, from the ordered keys of its smallest and largest one. Host and
// device code use it alike; who finds the keys is elsewhere.
#pragma once

#include <cstdint>
#include <type_traits>

#include <quern/compress.h>

#include "libcompress/core/rounding.h"
#include "libcompress/pipeline/elements.h"

namespace quern {

struct ExactRange {
  ValueRange range;
  double width_down = 0.0;  ///< max - min of the elements themselves, rounded down to binary64
  /// Known: no element is infinite, not a number, -0 or a declared fill value.
  bool all_ordinary = false;
};

/// Range from keys of a type's traits, min <= max.
template <class Element>
constexpr ExactRange range_of_keys(typename Element::Key min, typename Element::Key max) {
  ExactRange out;
  if constexpr (sizeof(typename Element::Key) == 8 && std::is_same_v<Element, IntegerElement<typename Element::Key>>) {
    out.range = {integer_down(min), integer_up(max)};
    out.width_down = integer_down(static_cast<std::uint64_t>(max) - static_cast<std::uint64_t>(min));
  } else {
    // + 0.0 turns -0 into 0.
    out.range = {Element::value(Element::from_key(min)) + 0.0, Element::value(Element::from_key(max)) + 0.0};
    out.width_down = difference_down(out.range.max, out.range.min);
  }
  return out;
}

}  // namespace quern
