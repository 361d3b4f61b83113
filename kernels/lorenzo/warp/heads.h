// Reading the heads of a chunk's tiles, for a warp, over an execution model X: every lane asks where the head after one
// that began at its byte would begin, so that following those answers finds all heads, which are then read side by
// side. The bytes are hostile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/tile_code.h"
#include "kernels/lorenzo/warp/stage.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

/// Heads of a chunk's tiles and their payloads.
struct LaneHeads {
  TileHead heads[kMaxTilesPerChunk];
  LaneBytes payloads[kMaxTilesPerChunk];
};

/// Pieces of 32 bytes that hold the heads of that many tiles.
constexpr unsigned head_pieces(std::size_t tiles) {
  return static_cast<unsigned>((1 + tiles * kMaxHeadBytes + kLanes - 1) / kLanes);
}

/// Memory that the lanes share.
struct LaneHeadBytes {
  static constexpr unsigned kBytes = kLanes * head_pieces(kMaxTilesPerChunk);
  std::uint8_t bytes[kBytes];
  std::uint8_t lengths[kBytes];  ///< of the head that begins at a byte; 0: none can
};

/// Length of a head that begins with `first`, bit i of `ends` saying that its byte i ends a number; 0 when it has no
/// end.
[[gnu::always_inline]] constexpr std::uint32_t head_length(std::uint32_t first, std::uint32_t ends) {
  const bool constant = (first & 0x7f) == 0;
  const bool same = (first & 0x80) != 0;
  const std::uint32_t size_ends = ends & ~7u;
  const std::uint32_t before_seed = constant ? 1 : bit_length(size_ends & (0 - size_ends));
  if (before_seed == 0 || same) return before_seed;
  const std::uint32_t seed_ends = before_seed < 32 ? ends >> before_seed << before_seed : 0;
  return bit_length(seed_ends & (0 - seed_ends));
}

/// Brings the first `count` bytes of a chunk to the lanes, with the lengths of heads.
template <class X, unsigned MaxTiles>
constexpr void share_head_bytes(const std::uint8_t* in, std::uint32_t count, LaneHeadBytes& shared) {
  constexpr unsigned kPieces = head_pieces(MaxTiles);
  typename X::template vec<std::uint32_t> own[kPieces];
  std::uint32_t ends[kPieces + 1];
  X::lanes([&](auto lane) {
    unroll<kPieces>([&](auto k) {
      const auto i = kLanes * static_cast<std::uint32_t>(k) + static_cast<std::uint32_t>(lane);
      X::set(own[k], lane, i < count ? in[i] : 0x80u);
    });
  });
  ends[kPieces] = 0;
  unroll<kPieces>([&](auto k) {
    typename X::template vec<bool> end;
    X::lanes([&](auto lane) { X::set(end, lane, X::get(own[k], lane) < 0x80); });
    ends[k] = X::ballot(end);
  });
  X::lanes([&](auto lane) {
    unroll<kPieces>([&](auto k) {
      const std::uint64_t window = ends[k] | static_cast<std::uint64_t>(ends[k + 1]) << 32;
      const std::uint32_t first = X::get(own[k], lane);
      const auto i = kLanes * static_cast<std::uint32_t>(k) + static_cast<std::uint32_t>(lane);
      X::store(shared.bytes + i, lane, static_cast<std::uint8_t>(first));
      X::store(shared.lengths + i, lane,
               static_cast<std::uint8_t>(head_length(first, static_cast<std::uint32_t>(window >> lane))));
    });
  });
  X::sync();
}

/// Heads of a chunk of equal values, whose seed is stored behind the first byte.
template <class X>
constexpr bool read_constant_heads(const LaneHeadBytes& shared, std::uint32_t count, std::uint32_t bytes,
                                   std::uint32_t tiles, LaneHeads& out) {
  const std::uint8_t* at = shared.bytes + 1;
  std::uint64_t z = 0;
  if (!get_leb128(at, shared.bytes + count, z) || static_cast<std::uint32_t>(at - shared.bytes) != bytes) return false;
  X::lanes([&](auto lane) {
    if (lane >= tiles) return;
    out.heads[lane] = TileHead{};
    out.heads[lane].seed = unzigzag64(z);
    out.payloads[lane] = {};
  });
  return true;
}

/// Reads the heads; false when the chunk is not made of exactly these parts. `bytes` is below 2^32. Other warps see
/// them after the next barrier.
template <class X, unsigned MaxTiles>
constexpr bool read_lane_heads(const std::uint8_t* in, std::uint32_t bytes, std::uint32_t tiles, LaneHeadBytes& shared,
                               LaneHeads& out) {
  if (bytes < 1 || tiles > MaxTiles) return false;
  const auto most = static_cast<std::uint32_t>(1 + tiles * kMaxHeadBytes);
  const std::uint32_t count = bytes < most ? bytes : most;
  share_head_bytes<X, MaxTiles>(in, count, shared);
  const std::uint8_t form = X::load_same(shared.bytes);
  if (form == kFormConstant) return read_constant_heads<X>(shared, count, bytes, tiles, out);
  if (form != kFormTiles) return false;
  // A head with no end keeps the next one at its own place, where reading it fails.
  typename X::template vec<std::uint32_t> begin, payload;
  typename X::template vec<std::uint64_t> seed;
  typename X::template vec<bool> bad;
  X::lanes([&](auto lane) { X::set(begin, lane, 1u); });
  std::uint32_t at = 1;
  rolled(0, tiles, [&](unsigned t) {
    X::lanes([&](auto lane) {
      if (lane == t) X::set(begin, lane, at);
    });
    if (at < count) at += X::load_same(shared.lengths + at);
  });
  typename X::template vec<TileHead> head;
  X::lanes([&](auto lane) {
    TileHead own;
    const std::uint8_t* from = shared.bytes + X::get(begin, lane);
    const bool mine = lane < tiles;
    X::set(bad, lane, mine && !get_head(from, shared.bytes + count, own, 0));
    X::set(payload, lane, mine ? own.payload : 0u);
    X::set(seed, lane, mine ? own.seed : std::uint64_t{0});
    X::set(head, lane, own);
  });
  if (X::any(bad)) return false;
  X::inclusive_scan(payload);
  X::inclusive_scan(seed);
  X::lanes([&](auto lane) {
    if (lane >= tiles) return;
    TileHead own = X::get(head, lane);
    own.seed = X::get(seed, lane);
    out.heads[lane] = own;
    out.payloads[lane] = {in + (at + X::get(payload, lane) - own.payload), own.payload};
  });
  return at + X::broadcast(payload, kLanes - 1) == bytes;
}

}  // namespace quern::kernels
