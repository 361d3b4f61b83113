// Quantizer numbers for tests, computed as docs/format-lorenzo.md says.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/common/quantize.h"

namespace quern::kernels::testing {

template <class F>
QuantizerParams float_params(double bound) {
  F largest = static_cast<F>(bound);
  if (static_cast<double>(largest) > bound) largest = std::nextafter(largest, F{0});
  QuantizerParams params;
  params.bound = bound;
  params.strict = largest;
  params.step = 2 * largest;
  params.reciprocal = F{1} / (2 * largest);
  return params;
}

template <class W>
QuantizerParams int_params(std::uint64_t half) {
  QuantizerParams params;
  params.int_half = half;
  params.int_step = 2 * half + 1;
  params.int_reciprocal = static_cast<W>(~W{0}) / params.int_step;
  return params;
}

}  // namespace quern::kernels::testing
