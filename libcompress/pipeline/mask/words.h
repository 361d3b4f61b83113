// Elements as unsigned words: the kernels' description of each dtype, and a typed call for a run-time dtype.
#pragma once

#include <cstdint>

#include <quern/dtype.h>

#include "kernels/mask/words.h"
#include "libcompress/core/element_of.h"

namespace quern::mask {

/// One element type as the mask stage sees it.
template <DType kType>
struct Words : kernels::ElementWords<element_of(kType)> {
  static constexpr DType kDtype = kType;
};

/// Calls body(Words<dtype>{}) and returns what it returns.
template <class Body>
decltype(auto) with_words(DType dtype, Body&& body) {
  return kernels::with_element_words(element_of(dtype), [&](auto words) -> decltype(auto) {
    return body(Words<static_cast<DType>(decltype(words)::kElement)>{});
  });
}

}  // namespace quern::mask
