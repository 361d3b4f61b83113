// The stencil codec on CUDA.
#pragma once

#include "libcompress/cuda/jobs/decode_kernels.h"

namespace quern::codec::stencil {

const cuda::ProgramKernels& stencil_program_kernels();

}  // namespace quern::codec::stencil
