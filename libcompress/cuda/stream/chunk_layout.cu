// A thread for each chunk.
#include "libcompress/cuda/stream/chunk_layout.cuh"

#include <algorithm>

#include "kernels/common/cuda/launch.cuh"
#include "libcompress/cuda/stream/segment_boxes.cuh"

namespace quern::cuda {
namespace {

constexpr unsigned kThreads = 128;

/// For the n-th place of a chunk in the tables of segments, and for the n-th slot.
__device__ __forceinline__ void lay_out_chunk(const StreamTables& tables, kernels::CudaChunk* chunks, std::uint64_t n) {
  if (n < std::uint64_t{tables.count} * tables.slots && n % tables.slots >= chunks_of(tables.streams[n / tables.slots]))
    chunks[n] = {};
  const std::uint64_t at = n / tables.chunks;
  const std::uint64_t i = at / tables.segments;
  if (i >= tables.count) return;
  const DeviceStream& stream = tables.streams[i];
  const std::uint64_t local = at % tables.segments;
  const std::uint64_t k = n % tables.chunks;
  if (stream.status != StatusCode::ok || local >= stream.segments) return;
  const std::uint64_t segment = stream.first_segment + local;
  if (k >= stream.layout.segment_chunks(segment)) return;
  const std::uint64_t slot =
      i * tables.slots + stream.layout.first_chunk(segment) - stream.layout.first_chunk(stream.first_segment) + k;
  chunks[slot] = chunk_in_window(stream, local, k, slot);
}

__global__ void __launch_bounds__(kThreads)
    start_encoding(const __grid_constant__ StreamTables tables, kernels::CudaChunk* chunks,
                   const __grid_constant__ ZeroedCounts counts) {
  const std::uint64_t n = std::uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::uint64_t segments = std::uint64_t{tables.count} * tables.segments;
  if (n < segments) tables.segment_records[n] = {};
  if (n < segments * tables.chunks) tables.chunk_records[n] = {};
  for (std::uint64_t i = n; i < counts.count; i += std::uint64_t{gridDim.x} * kThreads) counts.at[i] = 0;
  lay_out_chunk(tables, chunks, n);
}

unsigned blocks_for(const StreamTables& tables) {
  const std::uint64_t places = std::uint64_t{tables.count} * tables.segments * tables.chunks;
  const std::uint64_t threads = std::max(places, std::uint64_t{tables.count} * tables.slots);
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

}  // namespace

cudaError_t start_encoding_async(const StreamTables& tables, kernels::CudaChunk* chunks, const ZeroedCounts& counts,
                                 cudaStream_t queue) {
  if (blocks_for(tables) == 0) return cudaSuccess;
  return kernels::launch(&start_encoding, {blocks_for(tables), kThreads}, queue, tables, chunks, counts);
}

}  // namespace quern::cuda
