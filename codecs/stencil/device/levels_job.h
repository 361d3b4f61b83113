// A chunk in levels taken apart for a device: everything that bytes can get wrong is found here, on the host.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/stencil/chunk.h"

namespace quern::codec::stencil {

/// Appends the job (kernels/stencil/level_job.h) of the chunk `in` to `out`, from a multiple of
/// kernels::kJobAlignment bytes on. `box` says extents, strides and whether elements are special; its memory is not
/// touched. False, and nothing appended, when the host has to decode the chunk: it is of another mode, or damaged. May
/// throw std::bad_alloc.
bool append_levels_job(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                       Vector<std::uint8_t>& out);

}  // namespace quern::codec::stencil
