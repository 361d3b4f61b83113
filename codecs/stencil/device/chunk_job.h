// A chunk of any mode taken apart for a device: everything that bytes can get wrong is found here, on the host.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/stencil/chunk.h"

namespace quern::codec::stencil {

/// As append_levels_job; the job is that of the chunk's layout, on a lattice that of the chunk of integers with
/// the lattice in it. False for raw and constant chunks, too.
bool append_chunk_job(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                      Vector<std::uint8_t>& out);

}  // namespace quern::codec::stencil
