// The coarse levels of a whole array: how many there are when chunks lie side by side, and which places of each axis
// they keep. Arithmetic on extents only.
#pragma once

#include <quern/codec.h>
#include <quern/shape.h>

#include "codecs/stencil/levels/form.h"
#include "codecs/stencil/rules.h"

namespace quern::codec::stencil {

/// Coarse levels beside the array itself. Limited by where chunks begin (under the wavelet, where places are counted in
/// each chunk, by their extents), and where axes of the array are walked as one by how the faster one divides; 0 where
/// chunks have no levels.
unsigned count_levels(const Shape& shape, const Layout& layout, const ChunkGrid& grid, const LevelsForm& form);

/// The array at a level, from 1 to count_levels.
LevelForm array_level(const Shape& shape, const Layout& layout, const ChunkGrid& grid, const LevelsForm& form,
                      unsigned level);

}  // namespace quern::codec::stencil
