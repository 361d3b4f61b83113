// Encoding a chunk with a warp for each tile: encode_lanes builds a tile's planes, and once the heads of all tiles are
// known, place_lanes writes a tile to its place in the chunk. Over an execution model X; twin of cpu/lorenzo_encode.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/core/lane_tile.h"

namespace quern::kernels {

/// What a tile hands to the rest of its chunk.
struct LaneTileInfo {
  TileHead head;
  std::uint32_t dense_and_bytes = 0;  ///< bytes in the buffer's area
  std::uint32_t level1 = 0;           ///< bytes
  std::uint32_t exceptions = 0;
};

/// Tries the candidates and leaves the residuals of the first of the cheapest in z; returns the bits that occur.
template <class X, class W, TileShape S, class Rows>
constexpr W choose_lanes(const ChunkRules& rules, const Rows& q, W seed,
                         const typename X::template vec<std::uint32_t>& column, bool full, Rows& z,
                         Predictor& predictor) {
  std::uint32_t best_bytes = UINT32_MAX;
  W bits = 0;
  std::size_t best = 0;
  // One round more computes the residuals of the best again, unless it was the last one tried.
  for (std::size_t c = 0; c <= rules.candidate_count; ++c) {
    if (c == rules.candidate_count && best + 1 == c) break;
    const std::size_t candidate = c == rules.candidate_count ? best : c;
    predict<X, W, S>(rules.candidates[candidate], q, seed, z);
    typename X::template vec<std::uint32_t> bytes;
    typename X::template vec<W> all;
    X::lanes([&](auto lane) {
      const std::uint32_t exists = full ? 0xffffffffu : X::get(column, lane);
      W any = 0;
      std::uint32_t count = 0;
      unroll<kGroups>([&](auto k) {
        W group = 0;
        unroll<8>([&](auto j) {
          constexpr std::size_t kRow = 8 * decltype(k)::value + decltype(j)::value;
          const W value = X::get(z[kRow], lane) & static_cast<W>(W{0} - (exists >> kRow & 1));
          X::set(z[kRow], lane, value);
          group |= value;
        });
        any |= group;
        if constexpr (sizeof(W) == 8) {
          count += count_bits64(group);
        } else {
          count += count_bits(group);
        }
      });
      X::set(bytes, lane, count);
      X::set(all, lane, any);
    });
    const std::uint32_t cost = X::reduce_add(bytes);
    if (cost < best_bytes || c == rules.candidate_count) {
      best_bytes = cost;
      best = candidate;
      bits = X::reduce_or(all);
    }
    if (c == rules.candidate_count) break;
  }
  predictor = rules.candidates[best];
  return bits;
}

/// Which bytes of a plane are not zero: bit l of bytes[k] is byte k of lane l.
struct PlaneBallots {
  std::uint32_t bytes[4];

  [[gnu::always_inline]] constexpr std::uint32_t count() const {
    return count_bits(bytes[0]) + count_bits(bytes[1]) + count_bits(bytes[2]) + count_bits(bytes[3]);
  }
  /// Bytes before those of a lane.
  [[gnu::always_inline]] constexpr std::uint32_t rank(std::uint32_t lane) const {
    const std::uint32_t below = (1u << lane) - 1;
    return count_bits(bytes[0] & below) + count_bits(bytes[1] & below) + count_bits(bytes[2] & below) +
           count_bits(bytes[3] & below);
  }
  /// Bit 2j: whether level-1 byte j is not zero.
  [[gnu::always_inline]] constexpr std::uint32_t pairs() const {
    const std::uint32_t lanes = bytes[0] | bytes[1] | bytes[2] | bytes[3];
    return (lanes | lanes >> 1) & 0x55555555u;
  }
  /// Level-1 byte j.
  [[gnu::always_inline]] constexpr std::uint8_t level1(std::uint32_t j) const {
    std::uint32_t byte = 0;
    for (unsigned k = 0; k < 4; ++k) {
      const std::uint32_t two = bytes[k] >> (2 * j);
      byte |= (two & 1) << k | (two >> 1 & 1) << (k + 4);
    }
    return static_cast<std::uint8_t>(byte);
  }
};

/// The even bits of a word, moved together.
[[gnu::always_inline]] constexpr std::uint32_t even_bits(std::uint32_t v) {
  v &= 0x55555555u;
  v = (v | v >> 1) & 0x33333333u;
  v = (v | v >> 2) & 0x0f0f0f0fu;
  v = (v | v >> 4) & 0x00ff00ffu;
  return (v | v >> 8) & 0x0000ffffu;
}

template <class X>
constexpr PlaneBallots ballot_plane(const typename X::template vec<std::uint32_t>& plane) {
  PlaneBallots b{};
  for (unsigned k = 0; k < 4; ++k) {
    typename X::template vec<bool> set;
    X::lanes([&](auto lane) { X::set(set, lane, (X::get(plane, lane) >> (8 * k) & 0xff) != 0); });
    b.bytes[k] = X::ballot(set);
  }
  return b;
}

/// Appends one plane to the buffer, dense or sparse.
template <class X, class Buffer>
constexpr void put_lane_plane(const typename X::template vec<std::uint32_t>& plane, unsigned p, Buffer& buffer,
                              LaneTileInfo& info) {
  const PlaneBallots b = ballot_plane<X>(plane);
  const std::uint32_t pairs = b.pairs();
  const std::uint32_t bytes = b.count();
  std::uint8_t* const area = buffer.bytes() + info.dense_and_bytes;
  if (info.head.dense == p && 2 + count_bits(pairs) + bytes >= kPlaneBytes) {
    X::lanes([&](auto lane) {
      const std::uint32_t word = X::get(plane, lane);
      for (unsigned k = 0; k < 4; ++k) area[4 * lane + k] = static_cast<std::uint8_t>(word >> (8 * k));
    });
    ++info.head.dense;
    info.dense_and_bytes += kPlaneBytes;
    return;
  }
  std::uint8_t* const level1 = buffer.level1 + info.level1;
  std::uint8_t* const level2 = buffer.level2 + 2 * (p - info.head.dense);
  X::lanes([&](auto lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    std::uint32_t at = b.rank(l);
    const std::uint32_t word = X::get(plane, lane);
    for (unsigned k = 0; k < 4; ++k) {
      const auto byte = static_cast<std::uint8_t>(word >> (8 * k));
      if (byte != 0) area[at++] = byte;
    }
    if ((pairs >> l & 1) != 0) level1[count_bits(pairs & ((1u << l) - 1))] = b.level1(l / 2);
    if (l < 2) level2[l] = static_cast<std::uint8_t>(even_bits(pairs) >> (8 * l));
  });
  info.dense_and_bytes += bytes;
  info.level1 += count_bits(pairs);
}

/// Builds one tile: planes in the buffer, the rest in `info` and `marks`. Quantizers with a sign are not for this path.
template <class X, TileShape S, class Q, class Exact, class Rows>
constexpr void encode_lanes(const ChunkRules& rules, const Q& quantizer, const typename Q::Bits* chunk,
                            const LanePlace& place, Rows& q, Rows& z, LaneMarks<X>& marks,
                            LaneBuffer<typename Q::Word>& buffer, LaneTileInfo& info) {
  using W = typename Q::Word;
  static_assert(!Q::kHasSign && sizeof(W) == 4);
  info = LaneTileInfo{};
  read_lanes<X, S>(quantizer, chunk, place, q, marks, buffer);
  if (marks.refused_count * kLaneExceptionShare > place.elems()) {
    info.head.exact = true;
    read_lanes<X, S>(Exact{}, chunk, place, q, marks, buffer);
  }
  info.exceptions = marks.refused_count;
  info.head.exceptions = info.exceptions != 0;
  typename X::template vec<std::uint32_t> column;
  existing_rows<X, S>(place, column);
  const W seed = X::broadcast(q[0], 0);
  info.head.seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::make_signed_t<W>>(seed)));
  const W bits = choose_lanes<X, W, S>(rules, q, seed, column, place.full, z, info.head.predictor);
  const auto planes = static_cast<unsigned>(std::bit_width(bits));
  info.head.planes = static_cast<std::uint8_t>(planes);
  for (unsigned b = 0; 8 * b < planes; ++b) {
    typename X::template vec<std::uint32_t> words[8];
    byte_to_planes<X, W>(z, b, words);
    unroll<8>([&](auto j) {
      if (8 * b + j < planes) put_lane_plane<X>(words[j], 8 * b + static_cast<unsigned>(j), buffer, info);
    });
  }
  if (info.exceptions != 0) transpose_lane_bits<X>(marks.refused);  // now lane r holds the lanes of row r
  typename X::template vec<bool> used;
  X::lanes([&](auto lane) { X::set(used, lane, info.exceptions != 0 && X::get(marks.refused, lane) != 0); });
  const std::uint32_t exception_bytes =
      info.exceptions == 0 ? 0
                           : 4 + 4 * count_bits(X::ballot(used)) +
                                 info.exceptions * static_cast<std::uint32_t>(sizeof(typename Q::Bits));
  info.head.payload = exception_bytes + info.dense_and_bytes + 2 * (planes - info.head.dense) + info.level1;
  X::sync();
}

/// Copies bytes, neighbours by neighbouring lanes; returns the new end.
template <class X>
constexpr std::uint8_t* copy_lanes(std::uint8_t* out, const std::uint8_t* in, std::uint32_t bytes) {
  X::lanes([&](auto lane) {
    for (auto i = static_cast<std::uint32_t>(lane); i < bytes; i += kLanes) out[i] = in[i];
  });
  return out + bytes;
}

template <class X, class T>
constexpr void put_lane_bytes(std::uint8_t* out, T value) {
  for (unsigned k = 0; k < sizeof(T); ++k) out[k] = static_cast<std::uint8_t>(value >> (8 * k));
}

/// Writes the exceptions part; marks.refused holds a row's lanes in each lane.
template <class X, TileShape S, class Bits>
constexpr std::uint8_t* put_lane_exceptions(const Bits* chunk, const LanePlace& place, const LaneMarks<X>& marks,
                                            std::uint8_t* out) {
  typename X::template vec<bool> used;
  X::lanes([&](auto lane) { X::set(used, lane, X::get(marks.refused, lane) != 0); });
  const std::uint32_t rows = X::ballot(used);
  X::lanes([&](auto lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    if (l == 0) put_lane_bytes<X>(out, rows);
    if ((rows >> l & 1) != 0)
      put_lane_bytes<X>(out + 4 + 4 * count_bits(rows & ((1u << l) - 1)), X::get(marks.refused, lane));
  });
  out += 4 + 4 * count_bits(rows);
  for (std::uint32_t rest = rows; rest != 0; rest &= rest - 1) {
    const auto r = static_cast<unsigned>(std::countr_zero(rest));
    const std::uint32_t mask = X::broadcast(marks.refused, r);
    X::lanes([&](auto lane) {
      const auto l = static_cast<std::uint32_t>(lane);
      if ((mask >> l & 1) == 0) return;
      const std::uint64_t at = S == TileShape::line ? run_offset<S>(place, l) + r : run_offset<S>(place, r) + l;
      put_lane_bytes<X>(out + sizeof(Bits) * count_bits(mask & ((1u << l) - 1)), chunk[at]);
    });
    out += sizeof(Bits) * count_bits(mask);
  }
  return out;
}

/// Bytes of a LEB128 number, and of tile t's head.
[[gnu::always_inline]] constexpr std::uint32_t leb128_bytes(std::uint64_t v) {
  return (static_cast<std::uint32_t>(std::bit_width(v | 1)) + 6) / 7;
}
[[gnu::always_inline]] constexpr std::uint32_t head_bytes(const LaneTileInfo* infos, std::uint32_t t) {
  const TileHead& head = infos[t].head;
  const std::uint64_t delta = head.seed - (t == 0 ? 0 : infos[t - 1].head.seed);
  return 1 + (head.constant() ? 0 : 2 + leb128_bytes(head.payload)) + (delta == 0 ? 0 : leb128_bytes(zigzag64(delta)));
}

/// Writes tile `tile` of `tiles` to its place in the chunk at `out`, given the infos of all; returns the chunk's bytes.
template <class X, TileShape S, class Bits, class Word>
constexpr std::uint32_t place_lanes(const LaneTileInfo* infos, std::uint32_t tile, std::uint32_t tiles,
                                    const Bits* chunk, const LanePlace& place, const LaneMarks<X>& marks,
                                    LaneBuffer<Word>& buffer, std::uint8_t* out) {
  typename X::template vec<std::uint32_t> heads, heads_before, payload, payload_before;
  typename X::template vec<bool> differs;
  X::lanes([&](auto lane) {
    const auto t = static_cast<std::uint32_t>(lane);
    const bool used = t < tiles;
    X::set(heads, lane, used ? head_bytes(infos, t) : 0u);
    X::set(payload, lane, used ? infos[t].head.payload : 0u);
    X::set(payload_before, lane, t < tile ? infos[t].head.payload : 0u);
    X::set(heads_before, lane, t < tile ? X::get(heads, lane) : 0u);
    X::set(differs, lane, used && (!infos[t].head.constant() || infos[t].head.seed != infos[0].head.seed));
  });
  if (!X::any(differs)) {
    const std::uint64_t seed = zigzag64(infos[0].head.seed);
    X::lanes([&](auto lane) {
      if (tile != 0 || lane != 0) return;
      out[0] = kFormConstant;
      put_leb128(out + 1, seed);
    });
    return 1 + leb128_bytes(seed);
  }
  const std::uint32_t all_heads = X::reduce_add(heads);
  const std::uint32_t head_at = 1 + X::reduce_add(heads_before);
  X::lanes([&](auto lane) {
    if (lane != 0) return;
    if (tile == 0) out[0] = kFormTiles;
    put_head(out + head_at, infos[tile].head, tile == 0 ? 0 : infos[tile - 1].head.seed);
  });
  const LaneTileInfo& info = infos[tile];
  std::uint8_t* at = out + 1 + all_heads + X::reduce_add(payload_before);
  if (info.exceptions != 0) at = put_lane_exceptions<X, S>(chunk, place, marks, at);
  const std::uint32_t dense = static_cast<std::uint32_t>(kPlaneBytes) * info.head.dense;
  at = copy_lanes<X>(at, buffer.bytes(), dense);
  at = copy_lanes<X>(at, buffer.level2, 2u * (info.head.planes - info.head.dense));
  at = copy_lanes<X>(at, buffer.level1, info.level1);
  copy_lanes<X>(at, buffer.bytes() + dense, info.dense_and_bytes - dense);
  return 1 + all_heads + X::reduce_add(payload);
}

}  // namespace quern::kernels
