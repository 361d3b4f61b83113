// Elements in memory: which traits belong to a type, and which elements count. What bits mean is in
// kernels/common/element_keys.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include <quern/dtype.h>

#include "kernels/common/element_keys.h"
#include "libcompress/core/element_of.h"

namespace quern {

using kernels::FloatElement;
using kernels::IntegerElement;

/// Calls `f(Element{})` with the traits of a type.
template <class F>
constexpr auto with_element(DType dtype, F&& f) {
  return kernels::with_element(element_of(dtype), static_cast<F&&>(f));
}

/// Element `i` of memory that is aligned to anything.
template <class Element>
typename Element::Bits load_bits(const std::uint8_t* data, std::uint64_t i) {
  typename Element::Bits bits;
  std::memcpy(&bits, data + i * sizeof(bits), sizeof(bits));
  return bits;
}

/// Finite and not a declared fill value.
template <class Element>
bool is_valid(typename Element::Bits bits, std::span<const std::uint64_t> fill_bits) {
  if (!Element::finite(bits)) return false;
  for (const std::uint64_t fill : fill_bits)
    if (Element::same(bits, static_cast<typename Element::Bits>(fill))) return false;
  return true;
}

}  // namespace quern
