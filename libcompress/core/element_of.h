// The kernels' name of an element type. Public headers and kernels include nothing of each other, so both list the
// types; here the compiler proves that the two lists have the same numbers and say the same of each of them.
#pragma once

#include <quern/dtype.h>

#include "kernels/common/element_type.h"

namespace quern {

[[gnu::always_inline]] constexpr kernels::Element element_of(DType type) { return static_cast<kernels::Element>(type); }

namespace detail {

constexpr bool element_types_agree() {
  for (unsigned number = 0; number < 256; ++number) {
    const auto type = static_cast<DType>(number);
    const kernels::Element element = element_of(type);
    const bool known = is_known_dtype(static_cast<std::uint8_t>(number));
    if (known != kernels::is_element(element)) return false;
    if (known &&
        (dtype_bytes(type) != kernels::element_bytes(element) || is_float(type) != kernels::is_float(element) ||
         is_signed_integer(type) != kernels::is_signed_integer(element)))
      return false;
  }
  return true;
}
static_assert(element_types_agree());
static_assert(element_of(DType::f16) == kernels::Element::f16 && element_of(DType::bf16) == kernels::Element::bf16);

}  // namespace detail
}  // namespace quern
