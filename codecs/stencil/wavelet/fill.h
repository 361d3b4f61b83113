// Values where an array has none, for a transform that looks at all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codecs/stencil/wavelet/axes.h"

namespace quern::codec::stencil {

/// Fills the places with missing[i] != 0 of a dense array with integers that go smoothly from one ordinary value to the
/// other; at least one is ordinary. Only rank and extents of `axes` count. Allocates; may throw std::bad_alloc.
void fill_missing(const WaveletAxes& axes, const std::uint8_t* missing, double* values);

}  // namespace quern::codec::stencil
