// Decoding a tile that has a job (tile_job.h), for a warp, over an execution model X: its bytes are staged, all 32 rows
// stay in registers until they are codes, and the code has no loops but over sparse planes. What jobs leave out is in
// decode.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lorenzo/tile_job.h"
#include "kernels/lorenzo/warp/open_planes.h"
#include "kernels/lorenzo/warp/plane_decode.h"
#include "kernels/lorenzo/warp/reconstruct.h"
#include "kernels/lorenzo/warp/stage.h"
#include "kernels/lorenzo/warp/write.h"

namespace quern::kernels {

/// Planes whose code has no loops; payloads of more are read where they are stored.
inline constexpr unsigned kMostOpenPlanes = 24;
/// Bytes of a payload that are staged, at most: those of so many dense planes.
inline constexpr std::uint32_t kMostOpenBytes = static_cast<std::uint32_t>(kPlaneBytes) * kMostOpenPlanes;
/// Staged bytes begin anywhere in their first 16, and three words behind their end are read.
inline constexpr std::uint32_t kOpenStageBytes = kMostOpenBytes + 32;

/// What a warp that takes jobs works in, one tile after the other: the job in turn and the next two.
struct alignas(16) TileRoom {
  static constexpr unsigned kJobs = 3;
  std::uint32_t cells[kCodeCells];  ///< sparse planes, then codes
  std::uint32_t bytes[kOpenStageBytes / 4];
  TileJob jobs[kJobs];
};
static_assert(kMostOpenPlanes * kLanes <= kCodeCells && kPlaneSlots * kLanes <= kCodeCells);

/// Bytes that have to be staged before decode_tile(), from the multiple of 16 at or before the payload on: 0 where it
/// is read in place. All of them that are not in the payload may be anything.
[[gnu::always_inline]] constexpr std::uint32_t staged_bytes(const TileJob& job) {
  if (job.planes > kMostOpenPlanes || job.bytes > kMostOpenBytes || job.bytes == 0) return 0;
  return (static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(job.payload)) & 15) + job.bytes;
}

/// Planes by code for Groups times eight of them. `taken` is called once no staged byte is needed any more; it begins
/// with a sync, after which cells are written that lanes have just read.
template <class X, unsigned Groups, class Taken>
constexpr bool open_rows(const StagedPlanes& in, const typename X::template vec<std::uint32_t>& selectors,
                         std::uint32_t* slots, Taken&& taken, typename X::template vec<std::uint32_t> (&rows)[kRows]) {
  typename X::template vec<std::uint32_t> planes[8 * Groups];
  const bool good = open_planes<X, Groups>(in, selectors, slots, planes);
  taken();
  planes_to_rows<X, Groups>(planes, rows);
  return good;
}

/// Residuals of a tile, row r in rows[r]: set on every path, since a compiler keeps registers for whatever they held
/// before on a path that leaves them alone. False on bytes no encoder writes.
template <class X, class Taken>
constexpr bool read_job_rows(const TileJob& job, TileRoom& room,
                             const typename X::template vec<std::uint32_t>& selectors, Taken&& taken,
                             typename X::template vec<std::uint32_t> (&rows)[kRows]) {
  const std::uint32_t planes = job.planes;
  const std::uint32_t bytes = job.bytes;
  const std::uint8_t* const payload = job.payload;
  const auto first = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(payload)) & 15;
  const StagedPlanes in{room.bytes, first, bytes, planes, job.dense};
  if (planes > kMostOpenPlanes || bytes > kMostOpenBytes) {
    PlaneReader<X, StoredBytes> reader;
    bool good = reader.open({payload}, bytes, planes, in.dense);
    if (good) {
      reader.read_rows(0, room.cells, rows);
      good = reader.finished();
    } else {
      X::lanes([&](auto lane) { unroll<kRows>([&](auto r) { X::set(rows[r], lane, 0u); }); });
    }
    taken();
    return good;
  }
  if (planes <= 8) return open_rows<X, 1>(in, selectors, room.cells, taken, rows);
  if (planes <= 16) return open_rows<X, 2>(in, selectors, room.cells, taken, rows);
  return open_rows<X, 3>(in, selectors, room.cells, taken, rows);
}

/// A tile without planes: every code is `seed`.
template <class X>
constexpr void fill_cells(std::uint32_t seed, std::uint32_t* cells) {
  X::lanes([&](auto lane) {
    const LaneQuad same{{seed, seed, seed, seed}};
    unroll<kCodeCells / (4 * kLanes)>(
        [&](auto i) { X::store(reinterpret_cast<LaneQuad*>(cells) + kLanes * i + lane, lane, same); });
  });
  X::sync();
}

template <class X, TileShape S, class Bits, class Store>
constexpr void write_job(const ChunkRules& rules, const TileJob& job, const std::uint32_t* cells, const Store& store) {
  using Word = CodeWord<Bits>;
  LanePlace place;
  place.stride_z = job.strides[0];
  place.stride_y = job.strides[1];
  place.extents[0] = job.depth;
  place.extents[1] = job.height;
  place.extents[2] = job.width;
  typename X::template vec<std::uint32_t> minus;
  X::lanes([&](auto lane) { X::set(minus, lane, 0u); });
  const CellCodes<Word> codes{cells, static_cast<Word>(job.seed), sizeof(Word) == 8};
  const std::uint32_t flags = job.flags;
  // Twice as many packs of 64-bit elements at once would spill.
  constexpr bool kStraight = sizeof(Bits) < 8;
  write_lanes<X, S, kStraight>(rules.element, (flags & TileJob::kExact) != 0 ? QuantizerKind::exact : rules.quantizer,
                               rules.params, codes, minus, false, place, (flags & TileJob::kPacks) != 0,
                               static_cast<Bits*>(job.elements), store);
}

/// Decodes the tile of a job whose staged_bytes() are in the room; false on bytes no encoder writes. `selectors`:
/// lane_gap_selectors(). After it, and after taken() the
/// staged bytes, the room may be written again. store(at, lane, pack) stores a pack (packs.h).
template <class X, TileShape S, class Bits, class Taken, class Store>
constexpr bool decode_tile(const ChunkRules& rules, const TileJob& job, TileRoom& room,
                           const typename X::template vec<std::uint32_t>& selectors, Taken&& taken,
                           const Store& store) {
  // Words of 64 bits hold distances from the seed.
  const auto seed = sizeof(CodeWord<Bits>) == 8 ? 0u : static_cast<std::uint32_t>(job.seed);
  if (job.planes == 0) {
    taken();
    fill_cells<X>(seed, room.cells);
  } else {
    typename X::template vec<std::uint32_t> rows[kRows];
    if (!read_job_rows<X>(job, room, selectors, taken, rows)) return false;
    reconstruct<X, std::uint32_t, S, true>(job.predictor, seed, rows, room.cells);
  }
  write_job<X, S, Bits>(rules, job, room.cells, store);
  X::sync();
  return true;
}

}  // namespace quern::kernels
