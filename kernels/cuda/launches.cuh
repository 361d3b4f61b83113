// Launches that the host functions put together; arguments were checked.
#pragma once

#include "kernels/cuda/lorenzo_cuda.h"

namespace quern::kernels {

void launch_encode(const ChunkRules& rules, const CudaGrid& grid, const void* in, std::uint8_t* slots,
                   std::uint64_t slot_bytes, std::uint64_t* sizes, cudaStream_t stream);
void launch_decode(const ChunkRules& rules, const CudaGrid& grid, const std::uint8_t* in, std::uint64_t bytes,
                   const std::uint64_t* offsets, void* out, std::uint32_t* damaged, cudaStream_t stream);

}  // namespace quern::kernels
