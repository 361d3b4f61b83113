// The way from slots to the compact output, and the host functions.
#include <algorithm>

#include "kernels/cuda/chunk_box.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/launches.cuh"
#include "kernels/cuda/shared_memory.cuh"
#include "kernels/cuda/warp_lanes.cuh"

namespace quern::kernels {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr unsigned kGatherThreads = 128;
constexpr unsigned kSumThreads = 1024;
static_assert(kSumThreads == 32 * 32, "one warp scans the sums of all warps");

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Bytes of a slot: the largest chunk, rounded so that slots begin aligned; the slack lets a copy read one word more.
std::size_t slot_bytes_of(const ChunkRules& rules, const CudaGrid& grid) {
  return aligned(max_lorenzo_chunk_bytes(rules.element, chunk_tiles(grid, rules.tile)));
}

struct SumShared {
  std::uint64_t warp_sums[kSumThreads / 32];
};

/// Where chunks begin, from their sizes; offsets[chunks] is the total. One CTA: the sizes are a thousandth and less of
/// what the encoder reads. A thread sums 4 neighbours, warps sum threads, all threads sum warps.
__global__ void __launch_bounds__(kSumThreads)
    sum_sizes(const std::uint64_t* sizes, std::uint32_t chunks, std::uint64_t* offsets) {
  constexpr unsigned kEach = 4;
  auto& warp_sums = shared_memory<SumShared>().warp_sums;
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  std::uint64_t before = 0;
  for (std::uint64_t begin = 0; begin < chunks; begin += kEach * kSumThreads) {
    const std::uint64_t at = begin + kEach * threadIdx.x;
    std::uint64_t own[kEach];
    unroll<kEach>([&](auto k) { own[k] = at + k < chunks ? sizes[at + k] : 0; });
    unroll<kEach - 1>([&](auto k) { own[k + 1] += own[k]; });
    std::uint64_t sum = own[kEach - 1];
    WarpLanes::inclusive_scan(sum);
    if (lane == 31) warp_sums[warp] = sum;
    __syncthreads();
    std::uint64_t warps = warp_sums[lane];
    WarpLanes::inclusive_scan(warps);
    const std::uint64_t total = __shfl_sync(WarpLanes::kAll, warps, 31);
    const std::uint64_t lower = __shfl_sync(WarpLanes::kAll, warps, (warp + 31) % 32);
    const std::uint64_t start = before + (warp == 0 ? 0 : lower) + sum - own[kEach - 1];
    unroll<kEach>([&](auto k) {
      if (at + k < chunks) offsets[at + k + 1] = start + own[k];
    });
    before += total;
    __syncthreads();
  }
  if (threadIdx.x == 0) offsets[0] = 0;
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
  const std::uint32_t first = std::min(bytes, (4 - misaligned) & 3);
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
  std::size_t total() const { return slots + sizes; }
};

Workspace plan_workspace(const ChunkRules& rules, const CudaGrid& grid) {
  const std::uint64_t chunks = chunk_count(grid);
  return {chunks * slot_bytes_of(rules, grid), aligned(chunks * sizeof(std::uint64_t))};
}

}  // namespace

bool lorenzo_cuda_serves(const ChunkRules& rules) {
  const auto element = static_cast<unsigned>(rules.element);
  const bool is_float = element >= 1 && element <= 4;
  const bool is_integer = (element >= 8 && element <= 11) || (element >= 16 && element <= 19);
  const bool known = rules.quantizer == QuantizerKind::pointwise
                         ? is_float
                         : (is_float || is_integer) && static_cast<unsigned>(rules.quantizer) <= 2;
  return known && rules.candidate_count > 0 && rules.candidate_count <= kMaxCandidates;
}

cudaError_t lorenzo_encode_workspace(const ChunkRules& rules, const CudaGrid& grid, std::size_t& bytes) {
  if (!lorenzo_cuda_serves(rules) || !grid_fits(grid, rules)) return cudaErrorInvalidValue;
  bytes = plan_workspace(rules, grid).total();
  return cudaSuccess;
}

cudaError_t lorenzo_encode_async(const ChunkRules& rules, const CudaGrid& grid, const void* in, std::uint8_t* out,
                                 std::uint64_t capacity, std::uint64_t* offsets, void* workspace,
                                 std::size_t workspace_bytes, cudaStream_t stream) {
  if (!lorenzo_cuda_serves(rules) || !grid_fits(grid, rules)) return cudaErrorInvalidValue;
  const Workspace plan = plan_workspace(rules, grid);
  if (workspace_bytes < plan.total()) return cudaErrorInvalidValue;
  const std::uint64_t chunks = chunk_count(grid);
  if (chunks == 0) return cudaMemsetAsync(offsets, 0, sizeof *offsets, stream);
  const std::size_t slot_bytes = slot_bytes_of(rules, grid);
  auto* const slots = static_cast<std::uint8_t*>(workspace);
  auto* const sizes = reinterpret_cast<std::uint64_t*>(slots + plan.slots);
  cudaError_t error = lorenzo_launches(rules.element).encode(rules, grid, in, slots, slot_bytes, sizes, stream);
  if (error != cudaSuccess) return error;
  error = launch(&sum_sizes, {1, kSumThreads, sizeof(SumShared)}, stream, sizes, static_cast<std::uint32_t>(chunks),
                 offsets);
  if (error != cudaSuccess) return error;
  return launch(&gather_chunks, {static_cast<unsigned>(chunks), kGatherThreads}, stream, slots, slot_bytes, offsets,
                out, capacity);
}

cudaError_t lorenzo_decode_async(const ChunkRules& rules, const CudaGrid& grid, const std::uint8_t* in,
                                 std::uint64_t bytes, const std::uint64_t* offsets, void* out, std::uint32_t* damaged,
                                 cudaStream_t stream) {
  ChunkRules decoded = rules;
  decoded.candidate_count = 1;  // an encoder's matter
  if (!lorenzo_cuda_serves(decoded) || !grid_fits(grid, rules)) return cudaErrorInvalidValue;
  if (chunk_count(grid) == 0) return cudaSuccess;
  return lorenzo_launches(rules.element).decode(rules, grid, in, bytes, offsets, out, damaged, stream);
}

}  // namespace quern::kernels
