// Elements as numbers and back: what a value is, which bits a reconstruction gets, and whether they keep the bound.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <quern/dtype.h>

#include "kernels/common/exact_difference.h"
#include "kernels/common/number_elements.h"
#include "kernels/common/round_to_integer.h"
#include "kernels/stencil/cpu/stencil.h"
#include "libcompress/core/element_of.h"

namespace quern::codec::stencil {

using kernels::Bf16;
using kernels::F16;
using kernels::F32;
using kernels::F64;
using kernels::Int;
using kernels::keeps_bound;
using kernels::nearest;
using kernels::nearest_integer;

/// Calls f(Element{}) for a supported type.
template <class F>
auto with_element(DType dtype, F&& f) {
  return kernels::with_number_element(element_of(dtype), f);
}

/// out[x] = the value of from[x * step].
template <class Element>
void widen_elements(const kernels::StencilKernels& kernels, const typename Element::Bits* from, std::size_t step,
                    std::size_t count, double* out) {
  if constexpr (std::is_same_v<Element, F32>) {
    kernels.widen(from, step, count, out);
  } else {
    for (std::size_t x = 0; x < count; ++x) out[x] = Element::value(from[x * step]);
  }
}

/// Elements that come back nearer than this keep a bound, however differences are rounded.
inline double clear_distance(double bound) { return bound * (1 - 0x1p-50); }

/// True for most runs of elements: all come back nearer than the bound by more than differences are rounded, and none
/// is a zero, which may have a sign to keep.
template <class Element>
bool clearly_kept(const kernels::StencilKernels& kernels, const double* originals, const double* values,
                  std::size_t count, double unit, double base, double bound) {
  const double strict = clear_distance(bound);
  if constexpr (std::is_same_v<Element, F32> || std::is_same_v<Element, F64>)
    return kernels.all_near(originals, values, count, unit, base, strict, std::is_same_v<Element, F32>);
  bool kept = true;
  for (std::size_t x = 0; x < count && kept; ++x)
    kept =
        std::fabs(originals[x] - Element::value(Element::bits(values[x] * unit + base))) < strict && originals[x] != 0;
  return kept;
}

}  // namespace quern::codec::stencil
