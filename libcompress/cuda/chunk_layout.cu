// A thread for each chunk.
#include "libcompress/cuda/chunk_layout.cuh"

#include "kernels/core/mask_scan.h"
#include "kernels/cuda/launch.cuh"

namespace quern::cuda {
namespace {

constexpr unsigned kThreads = 128;

/// Chunk k of the stream's segment `local`.
__device__ __forceinline__ kernels::CudaChunk chunk_in_window(const DeviceStream& stream, std::uint64_t first_slot,
                                                              std::uint64_t local, std::uint64_t k) {
  kernels::CudaChunk chunk;
  const SegmentLayout& layout = stream.layout;
  const std::uint64_t segment = stream.first_segment + local;
  if (stream.status != StatusCode::ok || local >= stream.segments || k >= layout.segment_chunks(segment)) return chunk;
  const GridBox box = layout.chunk_box(segment, k);
  const auto& extents = layout.grid().extents;
  chunk.values = stream.window + (layout.flat(box.begin) - stream.window_begin) * dtype_bytes(layout.dtype());
  chunk.box = {box.extents, {extents[1] * extents[2], extents[2]}};
  const GridBox whole = layout.segment_box(segment);
  const std::uint64_t row = box.begin[1] - whole.begin[1];
  const std::uint64_t column = box.begin[2] - whole.begin[2];
  chunk.phase = static_cast<std::uint32_t>((row + column / kernels::kPairPiece) % kernels::kPairPieceEvery);
  const std::uint64_t before = layout.first_chunk(segment) - layout.first_chunk(stream.first_segment);
  chunk.slot = static_cast<std::uint32_t>(first_slot + before + k);
  return chunk;
}

__global__ void __launch_bounds__(kThreads)
    lay_out_chunks(const __grid_constant__ StreamTables tables, kernels::CudaChunk* chunks) {
  const std::uint64_t place = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::uint64_t at = place / tables.chunks;
  const std::uint64_t stream = at / tables.segments;
  if (stream >= tables.count) return;
  const std::uint64_t k = place % tables.chunks;
  chunks[place] = chunk_in_window(tables.streams[stream], stream * tables.slots, at % tables.segments, k);
}

}  // namespace

cudaError_t lay_out_chunks_async(const StreamTables& tables, kernels::CudaChunk* chunks, cudaStream_t queue) {
  const std::uint64_t places = std::uint64_t{tables.count} * tables.segments * tables.chunks;
  if (places == 0) return cudaSuccess;
  return kernels::launch(&lay_out_chunks, {static_cast<unsigned>((places + kThreads - 1) / kThreads), kThreads}, queue,
                         tables, chunks);
}

}  // namespace quern::cuda
