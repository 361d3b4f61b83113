// A chunk in raster order taken apart for a device: everything that bytes can get wrong is found here, on the host.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/stencil/chunk.h"

namespace quern::codec::stencil {

/// As append_levels_job; the job is that of kernels/stencil/raster_job.h.
bool append_raster_job(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                       Vector<std::uint8_t>& out);

}  // namespace quern::codec::stencil
