// Which known points a network of super-resolution reads, nearest first. Specified in docs/format-stencil.md,
// "Networks".
#pragma once

#include <cstddef>

#include <quern/memory.h>

#include "codecs/stencil/levels/axes.h"
#include "codecs/stencil/levels/taps.h"

namespace quern::codec::stencil {

/// Offsets, in units of the level's distance, of all points that are known when a class of axes that are all
/// hierarchical is coded, up to 3 away along its odd axes and 2 along its even ones: by the sum of squares, then in
/// lexicographic order. The first ones are those at a distance of 1, two for each odd axis. May throw std::bad_alloc.
Vector<Offset> network_taps(std::size_t rank, std::size_t parity_class);

}  // namespace quern::codec::stencil
