// What a decoding warp is told of one tile: heads are read for all tiles first, so that warps may take tiles one by one
// and know the next one's bytes. Plain data shared by every execution model.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/packs.h"
#include "kernels/lorenzo/tile.h"
#include "kernels/lorenzo/tile_code.h"

namespace quern::kernels {

/// Bytes behind a payload that its job tells of: with them its last 16 bytes are whole.
inline constexpr std::uint32_t kMostBehind = 15;

/// 48 bytes, which lanes copy in pieces of 16.
struct alignas(16) TileJob {
  const std::uint8_t* payload = nullptr;
  void* elements = nullptr;  ///< the tile's first one
  std::uint64_t seed = 0;
  std::uint32_t strides[2] = {0, 0};  ///< along z and y, in elements
  std::uint32_t chunk = 0;            ///< number of the tile's place
  std::uint16_t bytes = 0;            ///< of the payload
  std::uint16_t width = 0;            ///< extent along x
  std::uint8_t height = 0;            ///< along y
  std::uint8_t depth = 0;             ///< along z
  std::uint8_t planes = 0;            ///< at most 32
  std::uint8_t dense = 0;
  Predictor predictor = Predictor::none;
  std::uint8_t shape = kNoTile;  ///< a TileShape
  std::uint8_t behind = 0;       ///< bytes of the chunk behind the payload, at most kMostBehind
  std::uint8_t flags = 0;        ///< kExact, kPacks

  /// There is no such tile, or not for the warps that take jobs.
  static constexpr std::uint8_t kNoTile = 0xff;
  static constexpr std::uint8_t kExact = 1;
  static constexpr std::uint8_t kPacks = 2;  ///< the tile is whole and packs_aligned()
};
static_assert(sizeof(TileJob) == 48);

/// Whether warps that take jobs decode a tile: planes of 32 bits and nothing else, a predictor that the shape has, and
/// strides that a job can name. Other tiles, damaged ones among them, are left to decode_lanes (warp/decode.h).
[[gnu::always_inline]] constexpr bool is_job(const TileHead& head, TileShape shape, const ChunkBox& box) {
  const bool other_parts = head.signs || head.exceptions || head.wide;
  const bool empty = head.planes == 0 && head.payload != 0;
  return !other_parts && !empty && head.planes <= 32 && predictor_fits(head.predictor, shape) &&
         ((box.strides[0] | box.strides[1]) >> 32) == 0;
}

/// Where a chunk's tiles begin when they are gone through in order, without a division.
struct TileWalk {
  std::uint32_t x = 0, y = 0, z = 0;

  [[gnu::always_inline]] constexpr void next(TileShape shape, const ChunkBox& box) {
    const auto size = tile_extents(shape);
    x += size[2];
    if (x < box.extents[2]) return;
    x = 0;
    y += size[1];
    if (y < box.extents[1]) return;
    y = 0;
    z += size[0];
  }
};

/// The job of a tile that is_job(): place and shape.
[[gnu::always_inline]] constexpr void place_job(const ChunkBox& box, void* chunk, std::size_t element_size,
                                                TileShape shape, const TileWalk& at, TileJob& job) {
  const auto size = tile_extents(shape);
  const auto extent = [&](std::size_t axis, std::uint32_t begin) {
    const std::uint64_t left = box.extents[axis] - begin;
    return left < size[axis] ? static_cast<std::uint32_t>(left) : size[axis];
  };
  job.elements =
      static_cast<std::uint8_t*>(chunk) + (at.z * box.strides[0] + at.y * box.strides[1] + at.x) * element_size;
  job.strides[0] = static_cast<std::uint32_t>(box.strides[0]);
  job.strides[1] = static_cast<std::uint32_t>(box.strides[1]);
  job.width = static_cast<std::uint16_t>(extent(2, at.x));
  job.height = static_cast<std::uint8_t>(extent(1, at.y));
  job.depth = static_cast<std::uint8_t>(extent(0, at.z));
  job.shape = static_cast<std::uint8_t>(shape);
  const bool whole = job.depth == size[0] && job.height == size[1] && job.width == size[2];
  if (whole && packs_aligned(shape, job.strides[0], job.strides[1], job.elements, element_size))
    job.flags |= TileJob::kPacks;
}

/// The job of a tile that is_job(): what its head says. `behind`: bytes of the chunk behind the payload.
[[gnu::always_inline]] constexpr void describe_job(const TileHead& head, std::uint64_t behind, TileJob& job) {
  job.seed = head.seed;
  job.bytes = static_cast<std::uint16_t>(head.payload);
  job.planes = head.planes;
  job.dense = head.dense;
  job.predictor = head.predictor;
  if (head.exact) job.flags |= TileJob::kExact;
  job.behind = static_cast<std::uint8_t>(behind < kMostBehind ? behind : kMostBehind);
}

}  // namespace quern::kernels
