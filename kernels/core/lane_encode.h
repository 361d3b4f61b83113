// Encoding a chunk with a warp for each tile: encode_lanes builds a tile's planes, and once the heads of all tiles are
// known, plan_lane_chunk finds a tile's place in the chunk and place_lanes writes it there. The exceptions stay where
// they are in the array until then. Over an execution model X; twin of cpu/lorenzo_encode.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/bits.h"
#include "kernels/core/lane_elements.h"
#include "kernels/core/lane_planes.h"
#include "kernels/core/lane_predict.h"

namespace quern::kernels {

/// What a tile hands to the rest of its chunk.
struct LaneTileInfo {
  TileHead head;
  std::uint32_t area = 0;    ///< bytes of planes in the buffer's area
  std::uint32_t level1 = 0;  ///< bytes
  std::uint32_t exceptions = 0;
  std::uint32_t sign_bytes = 0;
  SignPart sign_part = SignPart::dense;  ///< if there are sign bytes
};

/// Whether some code of an existing element is further from the seed than 32 bits reach.
template <class X>
constexpr bool is_wide(const std::uint32_t* cells, std::uint64_t seed,
                       const typename X::template vec<std::uint32_t>& column) {
  typename X::template vec<bool> outside;
  X::lanes([&](auto lane) {
    std::uint32_t far = 0;
    rolled(0, kGroups, [&](unsigned g) {
      const std::uint32_t exists = X::get(column, lane) >> (kGroupRows * g);
      unroll<kGroupRows>([&](auto j) {
        const unsigned cell = lane_cell(kGroupRows * g + static_cast<unsigned>(j), static_cast<unsigned>(lane));
        const std::uint64_t distance = load_cell<X, std::uint64_t>(cells, cell, lane) - seed;
        const auto sign = static_cast<std::uint32_t>(static_cast<std::int32_t>(distance) >> 31);
        far |= (static_cast<std::uint32_t>(distance >> 32) ^ sign) & (0u - (exists >> j & 1));
      });
    });
    X::set(outside, lane, far != 0);
  });
  return X::any(outside);
}

/// Predicts and makes planes in arithmetic word A; fills the head's part of it.
template <class X, class A, TileShape S, class Word>
constexpr void encode_cells(const ChunkRules& rules, A seed, const typename X::template vec<std::uint32_t>& column,
                            bool full, LaneBuffer<Word>& buffer, LaneTileInfo& info) {
  const A bits = predict_cells<X, A, S>(rules, buffer.cells(), seed, column, full, info.head.predictor);
  info.head.planes = static_cast<std::uint8_t>(bit_length(bits));
}

/// Decides how the signs are stored; leaves in marks.minus the words that are.
template <class X>
constexpr void measure_signs(std::uint32_t elems, const typename X::template vec<std::uint32_t>& column,
                             LaneMarks<X>& marks, LaneTileInfo& info) {
  const std::uint32_t minus = count_lane_bits<X>(marks.minus);
  if (minus == 0) return;
  info.head.signs = true;
  if (minus == elems) {
    info.sign_part = SignPart::all_minus;
    info.sign_bytes = 1;
    return;
  }
  const bool complement = 2 * minus > elems;
  typename X::template vec<std::uint32_t> plane;
  X::lanes([&](auto lane) {
    const std::uint32_t word = X::get(marks.minus, lane);
    X::set(plane, lane, complement ? ~word & X::get(column, lane) : word);
  });
  SparseWord<X> s;
  measure_sparse<X>(plane, s);
  if (s.size() < kPlaneBytes) {
    info.sign_part = complement ? SignPart::sparse_complement : SignPart::sparse;
    info.sign_bytes = 1 + s.size();
    marks.minus = plane;
  } else {
    info.sign_part = SignPart::dense;
    info.sign_bytes = 1 + static_cast<std::uint32_t>(kPlaneBytes);
  }
}

/// Builds one tile: planes in the buffer, the rest in `info` and `marks`.
template <class X, TileShape S, class Bits>
constexpr void encode_lanes(const ChunkRules& rules, const Bits* chunk, const LanePlace& place, LaneMarks<X>& marks,
                            LaneBuffer<CodeWord<Bits>>& buffer, LaneTileInfo& info) {
  using W = CodeWord<Bits>;
  info = LaneTileInfo{};
  QuantizerKind kind = rules.quantizer;
  rolled(0, 2, [&](unsigned round) {
    if (round == 1) {
      if (marks.refused_count * kLaneExceptionShare <= place.elems()) return;
      info.head.exact = true;
      kind = QuantizerKind::exact;
    }
    read_lanes<X, S>(rules.element, kind, rules.params, chunk + place.offset, place, buffer.cells(), marks);
  });
  info.exceptions = marks.refused_count;
  info.head.exceptions = info.exceptions != 0;
  typename X::template vec<std::uint32_t> column;
  existing_rows<X, S>(place, column);
  if (kind == QuantizerKind::pointwise) measure_signs<X>(place.elems(), column, marks, info);

  const W seed = load_same_cell<X, W>(buffer.cells(), lane_cell(0, 0));
  X::sync();
  info.head.seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::make_signed_t<W>>(seed)));
  if constexpr (sizeof(W) == 8) info.head.wide = is_wide<X>(buffer.cells(), seed, column);
  if (sizeof(W) == 8 && info.head.wide) {
    encode_cells<X, W, S>(rules, seed, column, place.full, buffer, info);
  } else {
    encode_cells<X, std::uint32_t, S>(rules, static_cast<std::uint32_t>(seed), column, place.full, buffer, info);
  }
  cells_to_planes<X>(buffer.cells(), info.head.planes);
  const LanePlanes packed = pack_planes<X>(buffer, info.head.planes);
  info.head.dense = static_cast<std::uint8_t>(packed.dense);
  info.area = packed.area;
  info.level1 = packed.level1;

  std::uint32_t exception_bytes = 0;
  if (info.exceptions != 0) {
    transpose_lane_bits<X>(marks.refused);  // now lane r holds the lanes of row r
    typename X::template vec<bool> used;
    X::lanes([&](auto lane) { X::set(used, lane, X::get(marks.refused, lane) != 0); });
    exception_bytes = 4 + 4 * popcount(X::ballot(used)) + info.exceptions * static_cast<std::uint32_t>(sizeof(Bits));
  }
  info.head.payload = info.sign_bytes + exception_bytes + packed.size();
}

/// Four bytes of a stream, which is bytes elsewhere.
using BytesOf4 [[gnu::may_alias]] = std::uint32_t;

/// Copies bytes out of a buffer, which is words: words where the target is aligned, put together from two words of the
/// buffer, and bytes at both ends. Returns the new end.
template <class X>
constexpr std::uint8_t* copy_lanes(std::uint8_t* out, const std::uint8_t* in, std::uint32_t bytes) {
  const auto ahead = static_cast<std::uint32_t>(0 - reinterpret_cast<std::uintptr_t>(out)) & 3;
  const std::uint32_t first = ahead < bytes ? ahead : bytes;
  const std::uint32_t words = (bytes - first) / 4;
  const std::uint32_t last = first + 4 * words;
  const auto odd = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(in + first)) & 3;
  const auto* const from = reinterpret_cast<const std::uint32_t*>(in + first - odd);
  auto* const to = reinterpret_cast<BytesOf4*>(out + first);
  X::lanes([&](auto lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    for (std::uint32_t i = l; i < words; i += kLanes) {
      // The second word holds bytes of this one whenever the first does not hold all of them.
      const std::uint32_t low = X::load(from + i, lane);
      const std::uint32_t high = odd == 0 ? 0 : X::load(from + i + 1, lane);
      to[i] = static_cast<std::uint32_t>((static_cast<std::uint64_t>(high) << 32 | low) >> (8 * odd));
    }
    if (l < first) out[l] = X::load(in + l, lane);
    if (l < bytes - last) out[last + l] = X::load(in + last + l, lane);
  });
  return out + bytes;
}

template <class T>
[[gnu::always_inline]] constexpr void put_lane_bytes(std::uint8_t* out, T value) {
  unroll<sizeof(T)>([&](auto k) { out[k] = static_cast<std::uint8_t>(value >> (8 * k)); });
}

/// Writes the exceptions part; marks.refused holds a row's lanes in each lane.
template <class X, TileShape S, class Bits>
constexpr std::uint8_t* put_lane_exceptions(const Bits* tile, const LanePlace& place, const LaneMarks<X>& marks,
                                            std::uint8_t* out) {
  typename X::template vec<bool> used;
  X::lanes([&](auto lane) { X::set(used, lane, X::get(marks.refused, lane) != 0); });
  const std::uint32_t rows = X::ballot(used);
  X::lanes([&](auto lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    if (l == 0) put_lane_bytes(out, rows);
    if ((rows >> l & 1) != 0) put_lane_bytes(out + 4 + 4 * popcount(rows & bits_below(l)), X::get(marks.refused, lane));
  });
  out += 4 + 4 * popcount(rows);
  rolled(0, kRows, [&](unsigned r) {
    const std::uint32_t mask = X::broadcast(marks.refused, r);
    X::lanes([&](auto lane) {
      if ((mask >> lane & 1) != 0)
        put_lane_bytes(out + sizeof(Bits) * popcount(mask & bits_below(lane)), tile[cell_offset<S>(place, r, lane)]);
    });
    out += sizeof(Bits) * popcount(mask);
  });
  return out;
}

/// Writes the signs part as measured.
template <class X>
constexpr std::uint8_t* put_lane_signs(const LaneMarks<X>& marks, const LaneTileInfo& info, std::uint8_t* out) {
  X::lanes([&](auto lane) {
    if (lane == 0) out[0] = static_cast<std::uint8_t>(info.sign_part);
  });
  std::uint8_t* const level2 = out + 1;
  if (info.sign_part == SignPart::dense) {
    X::lanes([&](auto lane) { put_lane_bytes(level2 + 4 * lane, X::get(marks.minus, lane)); });
  } else if (info.sign_part != SignPart::all_minus) {
    SparseWord<X> s;
    measure_sparse<X>(marks.minus, s);
    std::uint8_t* const level1 = level2 + 2;
    std::uint8_t* const bytes = level1 + popcount(s.top);
    put_sparse_word<X>(
        marks.minus, s, [&](std::uint32_t i, auto, std::uint8_t v) { level2[i] = v; },
        [&](std::uint32_t i, auto, std::uint8_t v) { level1[i] = v; },
        [&](std::uint32_t i, auto, std::uint8_t v) { bytes[i] = v; });
  }
  return out + info.sign_bytes;
}

/// Bytes of tile t's head.
[[gnu::always_inline]] constexpr std::uint32_t head_bytes(const LaneTileInfo* infos, std::uint32_t t) {
  const TileHead& head = infos[t].head;
  const std::uint64_t delta = head.seed - (t == 0 ? 0 : infos[t - 1].head.seed);
  return 1 + (head.constant() ? 0 : 2 + leb128_bytes(head.payload)) + (delta == 0 ? 0 : leb128_bytes(zigzag64(delta)));
}

/// Bytes of a chunk that is this tile alone.
[[gnu::always_inline]] constexpr std::uint32_t lone_tile_bytes(const LaneTileInfo& info) {
  if (info.head.constant()) return 1 + leb128_bytes(zigzag64(info.head.seed));
  return 1 + head_bytes(&info, 0) + info.head.payload;
}

/// Where a tile's parts stand in its chunk, and the chunk's size.
struct LaneChunkPlan {
  std::uint32_t bytes = 0;    ///< of the chunk
  std::uint32_t head = 0;     ///< offset of the tile's head
  std::uint32_t payload = 0;  ///< offset of the tile's payload
  bool constant = false;      ///< the chunk is one seed
};

/// Plans tile `tile` of `tiles` given the infos of all.
template <class X>
constexpr void plan_lane_chunk(const LaneTileInfo* infos, std::uint32_t tile, std::uint32_t tiles,
                               LaneChunkPlan& plan) {
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
  plan.constant = !X::any(differs);
  if (plan.constant) {
    plan.bytes = 1 + leb128_bytes(zigzag64(infos[0].head.seed));
    return;
  }
  const std::uint32_t all_heads = X::reduce_add(heads);
  plan.head = 1 + X::reduce_add(heads_before);
  plan.payload = 1 + all_heads + X::reduce_add(payload_before);
  plan.bytes = 1 + all_heads + X::reduce_add(payload);
}

/// Writes a tile to its place in the chunk at `out`.
template <class X, TileShape S, class Bits>
constexpr void place_lanes(const LaneChunkPlan& plan, const LaneTileInfo* infos, std::uint32_t tile, const Bits* chunk,
                           const LanePlace& place, const LaneMarks<X>& marks, LaneBuffer<CodeWord<Bits>>& buffer,
                           std::uint8_t* out) {
  if (plan.constant) {
    X::lanes([&](auto lane) {
      if (tile != 0 || lane != 0) return;
      out[0] = kFormConstant;
      put_leb128(out + 1, zigzag64(infos[0].head.seed));
    });
    return;
  }
  X::lanes([&](auto lane) {
    if (lane != 0) return;
    if (tile == 0) out[0] = kFormTiles;
    put_head(out + plan.head, infos[tile].head, tile == 0 ? 0 : infos[tile - 1].head.seed);
  });
  const LaneTileInfo& info = infos[tile];
  std::uint8_t* at = out + plan.payload;
  if (info.sign_bytes != 0) at = put_lane_signs<X>(marks, info, at);
  if (info.exceptions != 0) at = put_lane_exceptions<X, S>(chunk + place.offset, place, marks, at);
  const std::uint32_t dense = static_cast<std::uint32_t>(kPlaneBytes) * info.head.dense;
  rolled(0, 4, [&](unsigned part) {
    const std::uint8_t* from = buffer.bytes();
    std::uint32_t size = dense;
    if (part == 1) {
      from = buffer.level2();
      size = 2u * (info.head.planes - info.head.dense);
    } else if (part == 2) {
      from = buffer.level1();
      size = info.level1;
    } else if (part == 3) {
      from += dense;
      size = info.area - dense;
    }
    at = copy_lanes<X>(at, from, size);
  });
}

}  // namespace quern::kernels
