// Elements in memory: which type a DType is, and passes over bytes that may lie at any address. What an element is
// worth is in kernels/metrics/element.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <quern/dtype.h>

#include "kernels/metrics/element.h"
#include "libcompress/core/element_of.h"

namespace quern::metrics {

/// Element `i` of memory that need not be aligned.
template <class Bits>
Bits load(const std::byte* data, std::uint64_t i) {
  Bits bits;
  std::memcpy(&bits, data + i * sizeof(Bits), sizeof(Bits));
  return bits;
}

/// Whether -0.0 is among the first `n` elements of either array; without branches.
template <class E>
bool has_negative_zero(const std::byte* x, const std::byte* y, std::uint64_t n) {
  using Bits = typename E::Bits;
  // As wide as an element, so that the loop vectorizes without widening.
  Bits found = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    const bool either = load<Bits>(x, i) == E::kSign || load<Bits>(y, i) == E::kSign;
    found = static_cast<Bits>(found | static_cast<Bits>(either));
  }
  return found != 0;
}

/// Calls `f(Type<E>{})` for the element type that belongs to `dtype`.
template <class F>
auto visit_dtype(DType dtype, F&& f) {
  return verifier::visit_element(element_of(dtype), f);
}

}  // namespace quern::metrics
