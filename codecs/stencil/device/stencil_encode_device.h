// Encoding of the stencil codec on CUDA.
#pragma once

#include <cstdint>
#include <span>

#include "libcompress/device/encode_kernels.h"

namespace quern::codec::stencil {

/// Those for chunks of an encoder with that state, which are in raster order or in levels; null where there are none.
const cuda::ProgramEncodeKernels* stencil_encode_kernels(std::span<const std::uint8_t> state);

}  // namespace quern::codec::stencil
