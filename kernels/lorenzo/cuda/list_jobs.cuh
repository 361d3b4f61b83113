// The kernels that read the heads of all chunks before a tile is decoded: a thread a chunk, one head after the other,
// where there are chunks enough to keep a device busy, else a warp a chunk, all heads side by side. Both fill the same
// table. What is stored may be anything.
#pragma once

#include <cuda_runtime.h>

#include "kernels/common/cuda/shared_memory.cuh"
#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/lorenzo/cuda/chunk_tiles.cuh"
#include "kernels/lorenzo/cuda/decode_room.h"
#include "kernels/lorenzo/tile_job.h"
#include "kernels/lorenzo/warp/heads.h"

namespace quern::kernels {

/// Chunks from which on a thread each takes less time than a warp each.
inline constexpr std::uint32_t kChunksForThreads = 8192;
inline constexpr unsigned kListThreads = 64;
inline constexpr unsigned kListWarps = 4;

/// One place of an array and what is stored there.
struct ListedChunk {
  std::uint32_t place;
  std::uint32_t tiles;  ///< that exist
  CudaChunk chunk;
  StoredChunk stored;
  TileShape shape;
  TileJob* jobs;  ///< as many as a chunk may have tiles; null: none may be coded here
};

/// What is found of a place, a bit each.
inline constexpr unsigned kDamagedChunk = 1;
inline constexpr unsigned kLeftChunk = 2;  ///< it is plain, or has tiles without a job

/// Tiles of a chunk that is not empty; one of more than `most` is cut short.
__device__ __forceinline__ std::uint32_t tiles_of(const ChunkBox& box, TileShape shape, std::uint32_t most) {
  const auto size = tile_extents(shape);
  std::uint32_t tiles = 1;
  for (std::size_t a = 0; a < 3; ++a) tiles *= (static_cast<std::uint32_t>(box.extents[a]) + size[a] - 1) / size[a];
  return tiles < most ? tiles : most;
}

/// An array that failed has no rules that mean anything, and empty chunks.
__device__ __forceinline__ ListedChunk listed_chunk(const LorenzoChunks& chunks, const StoredChunk* stored,
                                                    const DecodeRoom& room, std::uint32_t place) {
  const std::uint32_t item = chunks.items == 1 ? 0 : place / chunks.chunks;
  const std::uint32_t in_item = place - item * chunks.chunks;
  ListedChunk c;
  c.place = place;
  c.chunk = chunks.at[place];
  c.stored = c.chunk.empty() ? StoredChunk{} : stored[place];
  c.shape = rules_of_item(chunks, item).tile;
  c.tiles = c.chunk.empty() ? 0 : tiles_of(c.chunk.box, c.shape, chunks.tiles);
  c.jobs = in_item < chunks.coded ? room.jobs + (std::uint64_t{item} * chunks.coded + in_item) * chunks.tiles : nullptr;
  return c;
}

/// The job of a tile; one without a tile where another warp has to decode it.
template <class Bits>
__device__ __forceinline__ TileJob make_job(const ListedChunk& c, const TileHead& head, const TileWalk& at,
                                            const std::uint8_t* payload, std::uint64_t behind) {
  TileJob job;
  if (!is_job(head, c.shape, c.chunk.box)) return job;
  job.payload = payload;
  job.chunk = c.place;
  describe_job(head, behind, job);
  place_job(c.chunk.box, c.chunk.values, sizeof(Bits), c.shape, at, job);
  return job;
}

/// Heads one after the other, by one thread: what is found, which is damage where the chunk is not made of exactly these
/// parts. Jobs get their place in the payloads first, and its beginning once all heads are read.
template <class Bits>
__device__ __forceinline__ unsigned list_in_order(const ListedChunk& c) {
  const std::uint8_t* in = c.stored.at;
  const std::uint8_t* const end = in + c.stored.bytes;
  const std::uint8_t form = *in++;
  TileHead head;
  if (form == kFormConstant) {
    std::uint64_t z = 0;
    if (!get_leb128(in, end, z) || in != end) return kDamagedChunk;
    head.seed = unzigzag64(z);
  } else if (form != kFormTiles) {
    return kDamagedChunk;
  }
  TileWalk at;
  std::uint64_t seed = 0;
  std::uint32_t payloads = 0;
  unsigned found = 0;
  for (std::uint32_t i = 0; i < c.tiles; ++i) {
    if (form == kFormTiles && !get_head(in, end, head, seed)) return kDamagedChunk;
    seed = head.seed;
    const TileJob job = make_job<Bits>(c, head, at, c.stored.at + payloads, 0);
    if (job.shape == TileJob::kNoTile) found = kLeftChunk;
    c.jobs[i] = job;
    payloads += head.payload;
    at.next(c.shape, c.chunk.box);
  }
  if (static_cast<std::uint64_t>(end - in) != payloads) return kDamagedChunk;
  for (std::uint32_t i = 0; i < c.tiles; ++i) {
    TileJob& job = c.jobs[i];
    if (job.bytes == 0) continue;
    const std::uint8_t* const payload = in + (job.payload - c.stored.at);
    const auto behind = static_cast<std::uint64_t>(end - payload) - job.bytes;
    job.payload = payload;
    job.behind = static_cast<std::uint8_t>(behind < kMostBehind ? behind : kMostBehind);
  }
  return found;
}

/// Heads side by side, by one warp: what is found, the same in all lanes.
template <class Bits>
__device__ __forceinline__ unsigned list_side_by_side(const ListedChunk& c, LaneHeadBytes& bytes, LaneHeads& heads) {
  using X = WarpLanes;
  if (!read_lane_heads<X, max_chunk_tiles(sizeof(Bits))>(c.stored.at, c.stored.bytes, c.tiles, bytes, heads))
    return kDamagedChunk;
  X::sync();
  const unsigned lane = X::lane();
  bool none = false;
  if (lane < c.tiles) {
    TileWalk at;
    rolled(0, lane, [&](unsigned) { at.next(c.shape, c.chunk.box); });
    const LaneBytes payload = heads.payloads[lane];
    const std::uint64_t behind =
        payload.left == 0 ? 0 : static_cast<std::uint64_t>(c.stored.at + c.stored.bytes - payload.at) - payload.left;
    const TileJob job = make_job<Bits>(c, heads.heads[lane], at, payload.at, behind);
    none = job.shape == TileJob::kNoTile;
    c.jobs[lane] = job;
  }
  return X::any(none) ? kLeftChunk : 0;
}

/// Whether a codec reads the chunk's heads here. Nothing else is done for a chunk of which nothing is stored.
__device__ __forceinline__ bool has_heads(const ListedChunk& c) {
  return c.stored.form == StoredForm::coded && c.stored.bytes != 0 && c.jobs != nullptr;
}
__device__ __forceinline__ bool is_left(const ListedChunk& c) {
  return c.stored.form != StoredForm::coded || c.stored.bytes != 0;
}

/// Jobs without a tile, from `first` on in steps.
__device__ __forceinline__ void clear_jobs(const ListedChunk& c, std::uint32_t first, std::uint32_t step,
                                           std::uint32_t tiles) {
  if (c.jobs == nullptr) return;
  for (std::uint32_t i = first; i < tiles; i += step) c.jobs[i] = TileJob{};
}

/// A thread a place.
template <class Bits>
__global__ void __launch_bounds__(kListThreads)
    list_jobs_by_threads(const __grid_constant__ LorenzoChunks chunks, const StoredChunk* stored,
                         const __grid_constant__ DecodeRoom room, std::uint32_t* damaged) {
  const std::uint32_t place = blockIdx.x * kListThreads + threadIdx.x;
  if (place >= chunks.items * chunks.chunks) return;
  const ListedChunk c = listed_chunk(chunks, stored, room, place);
  const bool heads = has_heads(c);
  const unsigned found = heads ? list_in_order<Bits>(c) : is_left(c) ? kLeftChunk : 0;
  clear_jobs(c, heads && found != kDamagedChunk ? c.tiles : 0, 1, chunks.tiles);
  room.left[place] = found == kLeftChunk ? 1 : 0;
  damaged[place] = found == kDamagedChunk ? 1 : 0;
}

struct ListShared {
  LaneHeads heads;
  LaneHeadBytes bytes;
};

/// A warp a place.
template <class Bits>
__global__ void __launch_bounds__(kListWarps* kLanes)
    list_jobs_by_warps(const __grid_constant__ LorenzoChunks chunks, const StoredChunk* stored,
                       const __grid_constant__ DecodeRoom room, std::uint32_t* damaged) {
  const std::uint32_t place = blockIdx.x * kListWarps + threadIdx.x / kLanes;
  if (place >= chunks.items * chunks.chunks) return;
  auto& shared = reinterpret_cast<ListShared*>(shared_bytes())[threadIdx.x / kLanes];
  const ListedChunk c = listed_chunk(chunks, stored, room, place);
  const bool heads = has_heads(c);
  const unsigned found = heads ? list_side_by_side<Bits>(c, shared.bytes, shared.heads) : is_left(c) ? kLeftChunk : 0;
  clear_jobs(c, (heads && found != kDamagedChunk ? c.tiles : 0) + WarpLanes::lane(), kLanes, chunks.tiles);
  if (WarpLanes::lane() != 0) return;
  room.left[place] = found == kLeftChunk ? 1 : 0;
  damaged[place] = found == kDamagedChunk ? 1 : 0;
}

}  // namespace quern::kernels
