// A chunk's points at a coarse level of the array, whatever mode the chunk has. What they are is specified in
// docs/format-stencil.md, "Levels of the array".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>
#include <quern/status.h>

#include "codecs/stencil/chunk.h"

namespace quern::codec::stencil {

std::size_t coarse_scratch_bytes(const ChunkSpec& spec);

/// Decodes a chunk's points of a level of the array, from 1 on, to `out`. Of a chunk in levels the same bits as in the
/// whole, without looking at the bytes of finer levels, which may be missing; of one under the wavelet local means; of
/// others the same bits, from all of the chunk. `in` begins with the mode; `chunk` says extents and special elements.
/// Fails with `unsupported` where chunks are in raster order throughout.
Status decode_coarse(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& chunk,
                     const LevelForm& form, unsigned level, const MutableBox3& out, std::span<std::uint8_t> scratch);

}  // namespace quern::codec::stencil
