// The way from slots to the compact output, and the host functions.
#include <cub/device/device_scan.cuh>

#include "kernels/cuda/chunk_box.cuh"
#include "kernels/cuda/launches.cuh"

namespace quern::kernels {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr unsigned kGatherThreads = 128;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Bytes of a slot: the largest chunk, rounded so that slots begin aligned; the slack lets a copy read one word more.
std::size_t slot_bytes_of(const ChunkRules& rules, const CudaGrid& grid) {
  return aligned(max_lorenzo_chunk_bytes(rules.element, chunk_tiles(grid, rules.tile)));
}

/// Copies each chunk from its slot: words at the aligned places of the output, bytes at both ends.
__global__ void __launch_bounds__(kGatherThreads)
    gather_chunks(const std::uint8_t* slots, std::uint64_t slot_bytes, const std::uint64_t* offsets, std::uint8_t* out,
                  std::uint64_t capacity) {
  const std::uint64_t begin = offsets[blockIdx.x];
  const std::uint64_t end = offsets[blockIdx.x + 1];
  if (end > capacity) return;
  const std::uint8_t* const slot = slots + blockIdx.x * slot_bytes;
  std::uint8_t* const to = out + begin;
  const auto bytes = static_cast<std::uint32_t>(end - begin);
  const auto misaligned = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(to) & 3);
  const std::uint32_t first = min(bytes, (4 - misaligned) & 3);
  const std::uint32_t words = (bytes - first) / 4;
  const auto* const from = reinterpret_cast<const std::uint32_t*>(slot);
  auto* const target = reinterpret_cast<std::uint32_t*>(to + first);
  for (std::uint32_t i = threadIdx.x; i < words; i += kGatherThreads)
    target[i] = __funnelshift_r(from[i], from[i + 1], 8 * first);
  if (threadIdx.x < first) to[threadIdx.x] = slot[threadIdx.x];
  const std::uint32_t last = first + 4 * words;
  if (threadIdx.x < bytes - last) to[last + threadIdx.x] = slot[last + threadIdx.x];
}

/// Parts of the workspace.
struct Workspace {
  std::size_t slots = 0;  ///< bytes
  std::size_t sizes = 0;
  std::size_t scan = 0;
  std::size_t total() const { return slots + sizes + scan; }
};

cudaError_t plan_workspace(const ChunkRules& rules, const CudaGrid& grid, Workspace& plan) {
  const std::uint64_t chunks = chunk_count(grid);
  plan.slots = chunks * slot_bytes_of(rules, grid);
  plan.sizes = aligned(chunks * sizeof(std::uint64_t));
  const std::uint64_t* in = nullptr;
  std::uint64_t* out = nullptr;
  return cub::DeviceScan::InclusiveSum(nullptr, plan.scan, in, out, static_cast<std::int64_t>(chunks));
}

}  // namespace

bool lorenzo_cuda_serves(const ChunkRules& rules) {
  return rules.element == Element::f32 && rules.quantizer == QuantizerKind::absolute && rules.candidate_count > 0 &&
         rules.candidate_count <= kMaxCandidates;
}

cudaError_t lorenzo_encode_workspace(const ChunkRules& rules, const CudaGrid& grid, std::size_t& bytes) {
  if (!lorenzo_cuda_serves(rules) || !grid_fits(grid, rules.tile)) return cudaErrorInvalidValue;
  Workspace plan;
  const cudaError_t error = plan_workspace(rules, grid, plan);
  bytes = plan.total();
  return error;
}

cudaError_t lorenzo_encode_async(const ChunkRules& rules, const CudaGrid& grid, const void* in, std::uint8_t* out,
                                 std::uint64_t capacity, std::uint64_t* offsets, void* workspace,
                                 std::size_t workspace_bytes, cudaStream_t stream) {
  if (!lorenzo_cuda_serves(rules) || !grid_fits(grid, rules.tile)) return cudaErrorInvalidValue;
  Workspace plan;
  if (const cudaError_t error = plan_workspace(rules, grid, plan); error != cudaSuccess) return error;
  if (workspace_bytes < plan.total()) return cudaErrorInvalidValue;
  if (const cudaError_t error = cudaMemsetAsync(offsets, 0, sizeof *offsets, stream); error != cudaSuccess)
    return error;
  const std::uint64_t chunks = chunk_count(grid);
  if (chunks == 0) return cudaSuccess;
  const std::size_t slot_bytes = slot_bytes_of(rules, grid);
  auto* const slots = static_cast<std::uint8_t*>(workspace);
  auto* const sizes = reinterpret_cast<std::uint64_t*>(slots + plan.slots);
  launch_encode(rules, grid, in, slots, slot_bytes, sizes, stream);
  if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  const cudaError_t error = cub::DeviceScan::InclusiveSum(slots + plan.slots + plan.sizes, plan.scan, sizes,
                                                          offsets + 1, static_cast<std::int64_t>(chunks), stream);
  if (error != cudaSuccess) return error;
  gather_chunks<<<static_cast<unsigned>(chunks), kGatherThreads, 0, stream>>>(slots, slot_bytes, offsets, out,
                                                                              capacity);
  return cudaGetLastError();
}

cudaError_t lorenzo_decode_async(const ChunkRules& rules, const CudaGrid& grid, const std::uint8_t* in,
                                 std::uint64_t bytes, const std::uint64_t* offsets, void* out, std::uint32_t* damaged,
                                 cudaStream_t stream) {
  ChunkRules decoded = rules;
  decoded.candidate_count = 1;  // an encoder's matter
  if (!lorenzo_cuda_serves(decoded) || !grid_fits(grid, rules.tile)) return cudaErrorInvalidValue;
  if (chunk_count(grid) == 0) return cudaSuccess;
  launch_decode(rules, grid, in, bytes, offsets, out, damaged, stream);
  return cudaGetLastError();
}

}  // namespace quern::kernels
