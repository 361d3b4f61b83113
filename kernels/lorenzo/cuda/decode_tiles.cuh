// The kernel that decodes tiles by their jobs: warps that stay, each of which takes every so many-th tile and has the
// bytes of its next one on their way while it decodes one.
#pragma once

#include <cuda_runtime.h>

#include "kernels/common/cuda/async_copy.cuh"
#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/streaming_store.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/lorenzo/cuda/chunk_tiles.cuh"
#include "kernels/lorenzo/warp/decode_tile.h"

namespace quern::kernels {

/// Warps of a CTA; they share nothing.
inline constexpr unsigned kTileWarps = 4;

/// CTAs that an SM should hold, which bounds the registers: 24 warps with 80 each on Hopper, where it was measured.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
inline constexpr unsigned kTileCtas = 6;
#else
inline constexpr unsigned kTileCtas = 5;
#endif

/// What the warps of a CTA work in.
struct TileRooms {
  TileRoom of_warp[kTileWarps];
};

/// Asks for a job.
__device__ __forceinline__ void fetch_job(const TileJob& from, TileJob& to) {
  const unsigned lane = WarpLanes::lane();
  if (lane < sizeof(TileJob) / 16)
    copy_async<16>(reinterpret_cast<std::uint8_t*>(&to) + 16 * lane,
                   reinterpret_cast<const std::uint8_t*>(&from) + 16 * lane);
}

/// Asks for the bytes of a job that have to be staged; of the last 16, those that the chunk has.
__device__ __forceinline__ void fetch_bytes(const TileJob& job, std::uint32_t* to) {
  const std::uint32_t end = staged_bytes(job);
  if (end == 0) return;
  const unsigned lane = WarpLanes::lane();
  const std::uint8_t* const from = job.payload - (reinterpret_cast<std::uintptr_t>(job.payload) & 15);
  auto* const shared = reinterpret_cast<std::uint8_t*>(to);
  const std::uint32_t there = end + job.behind;
  const std::uint32_t blocks = (end + 15) / 16;
  const std::uint32_t whole = there / 16 < blocks ? there / 16 : blocks;
  rolled(0, (whole + kLanes - 1) / kLanes, [&](unsigned round) {
    const std::uint32_t block = kLanes * round + lane;
    if (block < whole) copy_async<16>(shared + 16 * block, from + 16 * block);
  });
  if (whole != blocks && lane == 0) copy_async(shared + 16 * whole, from + 16 * whole, there & 15);
}

/// Decodes the `count` jobs of the arrays with one tile shape; damaged[q] becomes 1 where a tile of chunk q is damaged.
template <TileShape S, class Bits>
__global__ void __launch_bounds__(kTileWarps* kLanes, kTileCtas)
    decode_tiles(const __grid_constant__ LorenzoChunks chunks, const TileJob* jobs, std::uint32_t count,
                 std::uint32_t* damaged) {
  using X = WarpLanes;
  if (chunks.items == 1 && rules_of_item(chunks, 0).tile != S) return;
  TileRoom& room = shared_memory<TileRooms>().of_warp[threadIdx.x / kLanes];
  const std::uint32_t step = gridDim.x * kTileWarps;
  std::uint32_t tile = blockIdx.x * kTileWarps + threadIdx.x / kLanes;
  if (tile >= count) return;
  X::vec<std::uint32_t> selectors;
  lane_gap_selectors<X>(selectors);
  // The number of the tile after one, or a number behind the last.
  const auto after = [&](std::uint32_t t) { return count - t > step ? t + step : count; };
  fetch_job(jobs[tile], room.jobs[0]);
  std::uint32_t next = after(tile);
  if (next < count) fetch_job(jobs[next], room.jobs[1]);
  wait_for_copies();
  X::sync();
  fetch_bytes(room.jobs[0], room.bytes);
  unsigned turn = 0;
  while (true) {
    wait_for_copies();
    X::sync();
    const unsigned turn_of_next = turn == TileRoom::kJobs - 1 ? 0 : turn + 1;
    const auto taken = [&] {
      X::sync();
      if (next >= count) return;
      fetch_bytes(room.jobs[turn_of_next], room.bytes);
      const std::uint32_t later = after(next);
      if (later < count) fetch_job(jobs[later], room.jobs[turn_of_next == TileRoom::kJobs - 1 ? 0 : turn_of_next + 1]);
    };
    const TileJob& job = room.jobs[turn];
    if (job.shape != static_cast<std::uint8_t>(S)) {
      taken();
    } else {
      const std::uint32_t item = chunks.items == 1 ? 0 : job.chunk / chunks.chunks;
      const bool good = decode_tile<X, S, Bits>(rules_of_item(chunks, item), job, room, selectors, taken,
                                                [](auto* at, auto, const auto& pack) { store_streaming(at, pack); });
      if (!good && X::lane() == 0) atomicOr(damaged + job.chunk, 1u);
    }
    if (next >= count) return;
    tile = next;
    next = after(tile);
    turn = turn_of_next;
  }
}

}  // namespace quern::kernels
