// Entry points of the lorenzo kernels on CUDA: whole arrays in device memory, chunk by chunk, bytes as on the CPU.
// Nothing here allocates or waits; everything is queued on the caller's stream.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/core/chunk_task.h"

namespace quern::kernels {

/// A contiguous array cut into chunks: extents slowest axis first. Chunks are numbered with axis 2 fastest.
struct CudaGrid {
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::array<std::uint64_t, 3> chunk{1, 1, 1};
};

/// Chunks of the grid, and tiles of its largest chunk.
[[gnu::always_inline]] constexpr std::uint64_t chunk_count(const CudaGrid& grid) {
  std::uint64_t n = 1;
  for (std::size_t a = 0; a < 3; ++a) n *= (grid.extents[a] + grid.chunk[a] - 1) / grid.chunk[a];
  return n;
}
[[gnu::always_inline]] constexpr std::uint64_t chunk_tiles(const CudaGrid& grid, TileShape tile) {
  const auto n = tile_counts({grid.chunk, {0, 0}}, tile);
  return n[0] * n[1] * n[2];
}

/// Whether there are kernels for these rules: every element type, tile shape and quantizer that the format has.
bool lorenzo_cuda_serves(const ChunkRules& rules);

/// Device memory that lorenzo_encode_async needs; 256-byte aligned.
cudaError_t lorenzo_encode_workspace(const ChunkRules& rules, const CudaGrid& grid, std::size_t& bytes);

/// Encodes the array at `in` into `out`, chunks without gaps. `offsets` (chunk_count + 1 numbers) tells where they
/// begin; the last is the total, also when that exceeds `capacity`: chunks that do not fit are left out. All pointers
/// are device memory. cudaErrorInvalidValue for rules that are not served, a grid of more than 2^31 - 1 chunks or of
/// chunks of more tiles than the format's, and a workspace that is too small.
cudaError_t lorenzo_encode_async(const ChunkRules& rules, const CudaGrid& grid, const void* in, std::uint8_t* out,
                                 std::uint64_t capacity, std::uint64_t* offsets, void* workspace,
                                 std::size_t workspace_bytes, cudaStream_t stream);

/// Decodes the chunks at `in` (`bytes` in all) into the array at `out`. `damaged` (chunk_count numbers) becomes 1 for a
/// chunk whose bytes or offsets no encoder writes, whose part of the array is then undefined, else 0.
cudaError_t lorenzo_decode_async(const ChunkRules& rules, const CudaGrid& grid, const std::uint8_t* in,
                                 std::uint64_t bytes, const std::uint64_t* offsets, void* out, std::uint32_t* damaged,
                                 cudaStream_t stream);

}  // namespace quern::kernels
