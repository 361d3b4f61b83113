// The lorenzo codec on CUDA.
#pragma once

#include "codecs/lorenzo/lorenzo.h"
#include "libcompress/cuda/chunk_kernels.h"

namespace quern::codec::lorenzo {

/// Their codec state is kernels::ChunkRules.
const cuda::ChunkKernels& lorenzo_chunk_kernels();

}  // namespace quern::codec::lorenzo
