// Encoding a staged tile, for a warp, over an execution model X: codes, the cheapest predictor, bit planes. Twin of
// encode_lanes in encode.h for whole tiles in which no element is an exception and no code is far from the first; it
// refuses the others. The candidates are tried from the last to the first, so that of equally cheap ones the first wins.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lorenzo/tile_record.h"
#include "kernels/lorenzo/warp/byte_planes.h"
#include "kernels/lorenzo/warp/packed_codes.h"
#include "kernels/lorenzo/warp/residuals.h"

namespace quern::kernels {

/// The cheapest candidate so far, in one number that orders by cost, then by place: no cost reaches 2^30.
struct BestCandidate {
  std::uint32_t key = UINT32_MAX;

  static_assert(kMaxCandidates == 4);
  [[gnu::always_inline]] constexpr std::uint32_t place() const { return key & 3; }
  /// Whether this one is cheaper than all before.
  [[gnu::always_inline]] constexpr bool take(std::uint32_t cost, std::uint32_t place) {
    const std::uint32_t own = cost << 2 | place;
    if (own >= key) return false;
    key = own;
    return true;
  }
};

/// Lane 0 notes something in memory that the lanes share, so that it takes no register.
template <class X, class F>
constexpr void note(F&& f) {
  X::lanes([&](auto lane) {
    if (lane == 0) f(lane);
  });
}

/// Keeps plane bytes in memory that the lanes share, a lane's in its own column.
template <class X, class V>
constexpr void keep_bytes(std::uint32_t* memory, const PlaneBytes<V>& bytes) {
  X::lanes([&](auto lane) {
    unroll<8>([&](auto j) { X::store(memory + kLanes * j + lane, lane, X::get(bytes.bytes[j], lane)); });
    X::store(memory + kLanes * 8 + lane, lane, X::get(bytes.any, lane));
  });
}
template <class X, class V>
constexpr void take_kept_bytes(const std::uint32_t* memory, PlaneBytes<V>& bytes) {
  X::lanes([&](auto lane) {
    unroll<8>([&](auto j) { X::set(bytes.bytes[j], lane, X::load(memory + kLanes * j + lane, lane)); });
    X::set(bytes.any, lane, X::load(memory + kLanes * 8 + lane, lane));
  });
}

/// A tile whose residuals fit 16 bits: `words` from pack_codes.
template <class X, TileShape S, class V>
constexpr LanePlanes encode_narrow(const StagedRules& rules, V (&words)[kPairs], std::uint32_t* memory,
                                   TileRecord& record) {
  PlaneBytes<V> bytes[1];
  V e[kPairs];
  BestCandidate best;
  bool best_fits = true, again = false;
  std::uint32_t c = rules.candidate_count - 1;
  while (true) {
    X::hold(words);
    packed_residuals<X, S>(rules.candidate(c), words, e);
    const bool fits = bias_residuals<X>(e);
    if (again) break;
    std::uint32_t cost = 0;
    if (fits) {
      take_bytes<X>(e, bytes[0]);
      X::lanes(
          [&](auto lane) { X::set(e[0], lane, static_cast<std::uint32_t>(popcount(X::get(bytes[0].any, lane)))); });
      cost = X::reduce_add(e[0]);
    } else {
      cost = count_half_bytes<X>(e);
    }
    if (best.take(cost, c)) {
      best_fits = fits;
      if (fits && c != 0) keep_bytes<X>(memory, bytes[0]);
    }
    if (c != 0) {
      --c;
      continue;
    }
    // Residuals of the candidate that was tried last are still there.
    if (best_fits || best.place() == 0) break;
    c = best.place();
    again = true;
  }
  note<X>([&](auto) { record.predictor = rules.candidate(best.place()); });
  auto* const out = reinterpret_cast<std::uint8_t*>(memory);
  if (best_fits && best.place() != 0) take_kept_bytes<X>(memory, bytes[0]);
  X::sync();  // bytes were kept of every candidate that was cheaper than those before
  if (best_fits) return put_planes<X>(bytes, out);
  PlaneBytes<V> halves[2];
  take_halves<X>(e, halves);
  return put_planes<X>(halves, out);
}

/// Bytes of residuals that wait in `memory`, row r of a lane at 32 * r + lane.
template <class X, unsigned Groups, class V>
constexpr void gather_groups(const std::uint32_t* memory, PlaneBytes<V> (&groups)[Groups]) {
  X::lanes([&](auto lane) {
    std::uint32_t any[Groups] = {};
    unroll<8>([&](auto j) {
      std::uint32_t row[4];
      unroll<4>([&](auto k) { row[k] = X::load(memory + kLanes * (j + 8 * k) + lane, lane); });
      const std::uint32_t low01 = X::permute_bytes(row[0], row[1], 0x5140);
      const std::uint32_t low23 = X::permute_bytes(row[2], row[3], 0x5140);
      const std::uint32_t high01 = X::permute_bytes(row[0], row[1], 0x7362);
      const std::uint32_t high23 = X::permute_bytes(row[2], row[3], 0x7362);
      unroll<Groups>([&](auto g) {
        const std::uint32_t selector = g % 2 == 0 ? 0x5410 : 0x7632;
        const std::uint32_t byte =
            g < 2 ? X::permute_bytes(low01, low23, selector) : X::permute_bytes(high01, high23, selector);
        X::set(groups[g].bytes[j], lane, byte);
        any[g] |= byte;
      });
    });
    unroll<Groups>([&](auto g) { X::set(groups[g].any, lane, any[g]); });
  });
}

template <class X, unsigned Groups, class V>
constexpr LanePlanes put_gathered(std::uint32_t* memory) {
  PlaneBytes<V> groups[Groups];
  gather_groups<X>(memory, groups);
  X::sync();
  return put_planes<X>(groups, reinterpret_cast<std::uint8_t*>(memory));
}

/// Groups of planes that a tile may have: codes have 23 bits, and a residual that takes more than 24 is rare.
inline constexpr unsigned kWideGroups = 3;

/// Any tile; its residuals wait in memory, which holds those of the last candidate that was tried. Too many planes: more
/// bytes than any tile may have.
template <class X, TileShape S>
constexpr LanePlanes encode_wide(const StagedRules& rules, LaneCodes<X, std::uint32_t>& codes, std::uint32_t* memory,
                                 TileRecord& record) {
  using V = typename X::template vec<std::uint32_t>;
  open_codes<X, S>(codes);
  BestCandidate best;
  std::uint32_t planes = 0;
  bool again = false;
  std::uint32_t c = rules.candidate_count - 1;
  while (true) {
    X::hold(codes.rows);
    GroupBits<X, std::uint32_t> bits;
    for_residuals<X, S>(rules.candidate(c), codes, bits, [&](auto r, const auto& e) {
      X::lanes([&](auto lane) { X::store(memory + kLanes * r + lane, lane, X::get(e, lane)); });
    });
    if (again) break;
    if (best.take(count_plane_bytes<X>(bits), c)) planes = kernels::count_planes<X>(bits);
    if (c != 0) {
      --c;
      continue;
    }
    if (best.place() == 0) break;
    c = best.place();
    again = true;
  }
  note<X>([&](auto) { record.predictor = rules.candidate(best.place()); });
  if (planes <= 8 * kWideGroups) return put_gathered<X, kWideGroups, V>(memory);
  LanePlanes none;
  none.bytes = UINT32_MAX;
  return none;
}

/// A staged tile between its two steps.
template <class X>
struct StagedTile {
  LaneCodes<X, std::uint32_t> codes;
  CodeRange range;
  CodeSpread spread = CodeSpread::refused;
  std::uint64_t base = 0;  ///< codes are counted from here
};

/// First step: codes. After the next sync the staged values are not needed any more.
template <class X, TileShape S>
constexpr void read_staged(const StagedRules& rules, const std::uint32_t* stage, StagedTile<X>& tile) {
  tile.codes.zero = kRoundingBits32;
  tile.spread = read_patterns<X, S>(rules, stage, tile.codes.rows, tile.range);
}

/// Second step: the payload to the beginning of `memory`, which has kPayloadWords words; lane 0 writes the record, all
/// but what concerns the scan. Returns the bytes of the payload. Other lanes may read all that after the next sync, and
/// must not be reading what was there before. Memory and record are shared by the lanes. A payload that does not fit
/// the tile's slot is refused.
template <class X, TileShape S>
constexpr std::uint32_t encode_staged(const StagedRules& rules, std::uint32_t slot_bytes, StagedTile<X>& tile,
                                      std::uint32_t* memory, TileRecord& record) {
  using V = typename X::template vec<std::uint32_t>;
  note<X>([&](auto lane) {
    const auto first = static_cast<std::int32_t>(X::get(tile.codes.rows[0], lane) - tile.codes.zero);
    const std::uint64_t seed = tile.base + static_cast<std::uint64_t>(static_cast<std::int64_t>(first));
    record.seed = static_cast<std::uint32_t>(seed);
    record.seed_high = static_cast<std::uint32_t>(seed >> 32);
    record.payload = 0;
    record.refused = tile.spread == CodeSpread::refused ? 1 : 0;
  });
  if (tile.spread == CodeSpread::refused) return 0;
  LanePlanes packed;
  if (tile.spread == CodeSpread::narrow) {
    V words[kPairs];
    pack_codes<X>(tile.range, tile.codes.rows, words);
    packed = encode_narrow<X, S>(rules, words, memory, record);
  } else {
    packed = encode_wide<X, S>(rules, tile.codes, memory, record);
  }
  if (packed.bytes > slot_bytes) {
    note<X>([&](auto) { record.refused = 1; });
    return 0;
  }
  note<X>([&](auto) {
    record.payload = static_cast<std::uint16_t>(packed.bytes);
    record.planes = static_cast<std::uint8_t>(packed.planes);
    record.dense = static_cast<std::uint8_t>(packed.dense);
  });
  return packed.bytes;
}

}  // namespace quern::kernels
