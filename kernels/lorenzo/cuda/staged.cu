// The encoder of staged tiles, for each tile shape.
#include "kernels/lorenzo/cuda/staged.cuh"

#include <algorithm>

#include "kernels/lorenzo/cuda/staged_launches.cuh"

namespace quern::kernels {
namespace {

/// CTAs of a launch: as many as the device holds at a time, or as many as find a tile. Their warps together take whole
/// chunks.
cudaError_t staged_blocks(std::uint64_t places, unsigned& blocks) {
  constexpr unsigned kCtasOfChunk = kStagedTiles / kStagedWarps;
  static_assert(kStagedTiles % kStagedWarps == 0);
  int device = 0, processors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  const std::uint64_t held = std::uint64_t{kStagedCtas} * static_cast<unsigned>(processors) / kCtasOfChunk;
  blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(held, 1, places) * kCtasOfChunk);
  return error;
}

}  // namespace

cudaError_t encode_staged_tiles_async(const LorenzoChunks& chunks, const LorenzoSlots& slots, const ScanRequest& scan,
                                      cudaStream_t stream) {
  LaunchShape shape{1, kStagedWarps * kLanes, kStagedWarps * sizeof(StagedWarp)};
  cudaError_t error = staged_blocks(std::uint64_t{chunks.items} * chunks.chunks, shape.blocks);
  unroll<3>([&](auto s) {
    constexpr auto kShape = static_cast<TileShape>(decltype(s)::value);
    if ((chunks.shapes >> s & 1) == 0 || error != cudaSuccess) return;
    error = launch(&encode_staged_tiles<kShape>, shape, stream, chunks, slots, scan);
  });
  return error;
}

}  // namespace quern::kernels
