// The launches of a decoding call. Included by one source file for each width of element.
#pragma once

#include "kernels/common/cuda/launch_resident.cuh"
#include "kernels/lorenzo/cuda/decode_chunks.cuh"
#include "kernels/lorenzo/cuda/decode_tiles.cuh"
#include "kernels/lorenzo/cuda/launches.cuh"
#include "kernels/lorenzo/cuda/list_jobs.cuh"

namespace quern::kernels {

template <class Bits>
cudaError_t launch_job_lists(const LorenzoChunks& chunks, const StoredChunk* stored, const DecodeRoom& room,
                             std::uint32_t* damaged, cudaStream_t stream) {
  const std::uint32_t places = chunks.items * chunks.chunks;
  if (places >= kChunksForThreads)
    return launch(&list_jobs_by_threads<Bits>, {(places + kListThreads - 1) / kListThreads, kListThreads}, stream,
                  chunks, stored, room, damaged);
  const LaunchShape shape{(places + kListWarps - 1) / kListWarps, kListWarps * kLanes, kListWarps * sizeof(ListShared)};
  return launch(&list_jobs_by_warps<Bits>, shape, stream, chunks, stored, room, damaged);
}

/// Heads of all chunks, tiles by their jobs, what is left.
template <class Bits>
cudaError_t launch_decode_width(const LorenzoChunks& chunks, const StoredChunk* stored, void* workspace,
                                std::uint32_t* damaged, cudaStream_t stream) {
  const DecodeRoom room = DecodeRoom::in(chunks, workspace);
  const std::uint32_t places = chunks.items * chunks.chunks;
  cudaError_t error = launch_job_lists<Bits>(chunks, stored, room, damaged, stream);
  unroll<3>([&](auto s) {
    constexpr auto kShape = static_cast<TileShape>(decltype(s)::value);
    if ((chunks.shapes >> s & 1) == 0 || error != cudaSuccess) return;
    const TileJob* const jobs = room.jobs;
    const LaunchShape tiles{(room.jobs_count + kTileWarps - 1) / kTileWarps, kTileWarps * kLanes, sizeof(TileRooms)};
    error = launch_resident(&decode_tiles<kShape, Bits>, tiles, stream, chunks, jobs, room.jobs_count, damaged);
    if (error != cudaSuccess) return;
    const std::uint32_t* const left = room.left;
    const LaunchShape rest{places, kLanes * chunks.tiles, shared_size<DecodeShared, DecodeArea<Bits>>(chunks.tiles)};
    error = launch_resident(&decode_chunks<kShape, Bits>, rest, stream, chunks, stored, left, damaged);
  });
  return error;
}

}  // namespace quern::kernels
