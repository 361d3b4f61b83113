// Encoding of the stencil codec on CUDA.
#pragma once

#include "libcompress/cuda/program_encode_kernels.h"

namespace quern::codec::stencil {

/// Chunks in raster order.
const cuda::ProgramEncodeKernels& stencil_encode_kernels();

}  // namespace quern::codec::stencil
