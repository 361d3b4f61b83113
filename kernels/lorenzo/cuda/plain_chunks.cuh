// Chunks that are stored as their values, by the threads of a CTA.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/common/cuda/chunk.h"
#include "kernels/common/cuda/copy_bytes.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"

namespace quern::kernels {

/// Calls f(row of the box, bytes before it in C order, its bytes) for each row, a warp a row.
template <class Bits, class F>
__device__ __forceinline__ void warp_rows(Bits* values, const ChunkBox& box, F&& f) {
  const std::uint64_t row_bytes = box.extents[2] * sizeof(Bits);
  const std::uint64_t rows = box.extents[0] * box.extents[1];
  for (std::uint64_t r = threadIdx.x / kLanes; r < rows; r += blockDim.x / kLanes)
    f(values + r / box.extents[1] * box.strides[0] + r % box.extents[1] * box.strides[1], r * row_bytes, row_bytes);
}

/// Writes a raw chunk's values to its box, or zeros.
template <class Bits>
__device__ __forceinline__ void put_plain_chunk(const CudaChunk& chunk, const StoredChunk& stored) {
  warp_rows(static_cast<Bits*>(chunk.values), chunk.box, [&](Bits* row, std::uint64_t before, std::uint64_t bytes) {
    if (stored.form == StoredForm::raw) {
      copy_bytes(reinterpret_cast<std::uint8_t*>(row), stored.at + before, bytes, WarpLanes::lane(), kLanes);
    } else {
      for (std::uint64_t i = WarpLanes::lane(); i < bytes / sizeof(Bits); i += kLanes) row[i] = 0;
    }
  });
}

}  // namespace quern::kernels
