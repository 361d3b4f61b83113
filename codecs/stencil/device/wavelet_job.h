// A chunk under the wavelet transform taken apart for a device: everything that bytes can get wrong is found here, on
// the host.
#pragma once

#include <cstdint>
#include <span>

#include <quern/memory.h>

#include "codecs/stencil/chunk.h"

namespace quern::codec::stencil {

/// As append_levels_job; the job is that of kernels/stencil/wavelet_job.h.
bool append_wavelet_job(const ChunkSpec& spec, std::span<const std::uint8_t> in, const MutableBox3& box,
                        Vector<std::uint8_t>& out);

}  // namespace quern::codec::stencil
