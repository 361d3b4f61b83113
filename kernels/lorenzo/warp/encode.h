// Encoding a chunk with a warp for each tile: encode_lanes builds a tile's planes, and once the heads of all tiles are
// known, plan_lane_chunk finds a tile's place in the chunk and place_lanes writes it there. The exceptions stay where
// they are in the array until then. Over an execution model X; twin of cpu/lorenzo_encode.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/warp/elements.h"
#include "kernels/lorenzo/warp/planes.h"
#include "kernels/lorenzo/warp/predict.h"
#include "kernels/lorenzo/warp/residuals.h"

namespace quern::kernels {

/// What a tile hands to the rest of its chunk.
struct LaneTileInfo {
  TileHead head;
  std::uint32_t plane_bytes = 0;  ///< in the tile's buffer
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

/// Decides how the signs are stored; leaves in `words` those that are.
template <class X>
constexpr void keep_signs(std::uint32_t elems, const typename X::template vec<std::uint32_t>& column,
                          const typename X::template vec<std::uint32_t>& minus, std::uint32_t* words,
                          LaneTileInfo& info) {
  const std::uint32_t count = count_lane_bits<X>(minus);
  if (count == 0) return;
  info.head.signs = true;
  if (count == elems) {
    info.sign_part = SignPart::all_minus;
    info.sign_bytes = 1;
  } else {
    const bool complement = 2 * count > elems;
    typename X::template vec<std::uint32_t> plane;
    X::lanes([&](auto lane) {
      const std::uint32_t word = X::get(minus, lane);
      X::set(plane, lane, complement ? ~word & X::get(column, lane) : word);
    });
    SparseWord<X> s;
    measure_sparse<X>(plane, s);
    const bool dense = s.size() >= kPlaneBytes;
    info.sign_part = dense ? SignPart::dense : complement ? SignPart::sparse_complement : SignPart::sparse;
    info.sign_bytes = 1 + (dense ? static_cast<std::uint32_t>(kPlaneBytes) : s.size());
    X::lanes([&](auto lane) { X::store(words + lane, lane, dense ? X::get(minus, lane) : X::get(plane, lane)); });
  }
  info.head.payload += info.sign_bytes;
}

/// Leaves in `rows` the lanes of each row's exceptions.
template <class X, class Bits>
constexpr void keep_exceptions(LaneMarks<X>& marks, std::uint32_t* rows, LaneTileInfo& info) {
  transpose_lane_bits<X>(marks.refused);
  typename X::template vec<bool> used;
  X::lanes([&](auto lane) {
    X::set(used, lane, X::get(marks.refused, lane) != 0);
    X::store(rows + lane, lane, X::get(marks.refused, lane));
  });
  info.head.exceptions = true;
  info.head.payload +=
      4 + 4 * popcount(X::ballot(used)) + marks.refused_count * static_cast<std::uint32_t>(sizeof(Bits));
}

/// Reads a tile, by way of the cells unless all its elements are there and have codes: words of 32 bits come to
/// `codes`, words of 64 bits stay in the cells. Returns the quantizer that the tile is stored under.
template <class X, TileShape S, class Bits>
constexpr QuantizerKind read_tile(const ChunkRules& rules, const Bits* tile, const LanePlace& place,
                                  LaneBuffer<CodeWord<Bits>>& buffer, LaneCodes<X, std::uint32_t>& codes,
                                  LaneMarks<X>& marks) {
  if constexpr (std::is_same_v<Bits, std::uint32_t>) {
    if (place.full && reads_full_lanes(rules.element, rules.quantizer) &&
        read_full_lanes<X, S>(rules.params, tile, place, buffer.cells(), codes.rows)) {
      codes.zero = FullTileQuantizer::kZeroPattern;
      clear_marks<X>(marks);
      return rules.quantizer;
    }
  }
  QuantizerKind kind = rules.quantizer;
  rolled(0, 2, [&](unsigned round) {
    if (round == 1) {
      if (marks.refused_count * kLaneExceptionShare <= place.elems()) return;
      kind = QuantizerKind::exact;
    }
    read_lanes<X, S>(rules.element, kind, rules.params, tile, place, buffer.cells(), marks);
  });
  if constexpr (sizeof(Bits) < 8) {
    load_rows<X>(buffer.cells(), codes.rows);
    X::sync();
  }
  return kind;
}

/// Builds one tile: planes and marks in the buffer, the rest in `info`, which lane 0 writes.
template <class X, TileShape S, class Bits>
constexpr void encode_lanes(const ChunkRules& rules, const Bits* chunk, const LanePlace& place,
                            LaneBuffer<CodeWord<Bits>>& buffer, LaneTileInfo& info) {
  using W = CodeWord<Bits>;
  using V32 = typename X::template vec<std::uint32_t>;
  LaneCodes<X, std::uint32_t> codes;
  {
    LaneMarks<X> marks;
    const QuantizerKind kind = read_tile<X, S>(rules, chunk + place.offset, place, buffer, codes, marks);
    LaneTileInfo read;
    read.head.exact = kind != rules.quantizer;
    if (kind == QuantizerKind::pointwise) {
      V32 column;
      existing_rows<X, S>(place, column);
      keep_signs<X>(place.elems(), column, marks.minus, buffer.minus, read);
    }
    if (marks.refused_count != 0) keep_exceptions<X, Bits>(marks, buffer.refused, read);
    X::lanes([&](auto lane) {
      if (lane == 0) info = read;
    });
  }

  V32 bits[sizeof(W) / 4][kGroups];
  V32 rows[kRows];
  Predictor predictor = Predictor::none;
  std::uint64_t seed = 0;
  bool wide = false;
  if constexpr (sizeof(W) == 8) {
    seed = load_same_cell<X, W>(buffer.cells(), lane_cell(0, 0));
    X::sync();
    V32 column;
    existing_rows<X, S>(place, column);
    wide = is_wide<X>(buffer.cells(), seed, column);
    X::lanes([&](auto lane) { unroll<kGroups>([&](auto g) { X::set(bits[1][g], lane, 0u); }); });
    if (wide) {
      predictor = predict_cells<X, W, S>(rules, buffer.cells(), seed, column, place.full);
      load_rows<X>(buffer.cells() + kHalfCells, rows);
      find_group_bits<X>(rows, bits[1]);
      load_rows<X>(buffer.cells(), rows);
      find_group_bits<X>(rows, bits[0]);
    } else {
      load_rows<X>(buffer.cells(), codes.rows);
    }
  }
  if (!wide) {
    const std::uint32_t first = open_codes<X, S>(codes);
    if constexpr (sizeof(W) == 4)
      seed = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(first)));
  }
  X::lanes([&](auto lane) {
    if (lane != 0) return;
    info.head.seed = seed;
    info.head.wide = wide;
  });
  if (!wide) predictor = predict_codes<X, S>(rules, codes, buffer.cells(), place, bits[0], rows);
  std::uint32_t planes = count_planes<X>(bits[0]);
  if constexpr (sizeof(W) == 8) {
    const std::uint32_t upper = count_planes<X>(bits[1]);
    if (upper != 0) planes = kPlanesPerHalf + upper;
  }
  const LanePlanes packed = pack_planes<X>(buffer, planes, rows, bits);
  X::lanes([&](auto lane) {
    if (lane != 0) return;
    info.head.predictor = predictor;
    info.head.planes = static_cast<std::uint8_t>(planes);
    info.head.dense = static_cast<std::uint8_t>(packed.dense);
    info.head.payload += packed.bytes;
    info.plane_bytes = packed.bytes;
  });
}

/// Four bytes of a stream, which is bytes elsewhere.
using BytesOf4 [[gnu::may_alias]] = std::uint32_t;

/// Copies bytes out of a buffer, which is words: words where the target is aligned, put together from two words of the
/// buffer, and bytes at both ends. The buffer has a word behind the last that is copied.
template <class X>
constexpr void copy_lanes(std::uint8_t* out, const std::uint8_t* in, std::uint32_t bytes) {
  const auto ahead = static_cast<std::uint32_t>(0 - reinterpret_cast<std::uintptr_t>(out)) & 3;
  const std::uint32_t first = ahead < bytes ? ahead : bytes;
  const std::uint32_t words = (bytes - first) / 4;
  const std::uint32_t last = first + 4 * words;
  // The buffer begins with a word, so that `first` says which bytes of two words make one.
  const auto* const from = reinterpret_cast<const std::uint32_t*>(in);
  auto* const to = reinterpret_cast<BytesOf4*>(out + first);
  X::lanes([&](auto lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    if (l < first) out[l] = X::load(in + l, lane);
    if (l < bytes - last) out[last + l] = X::load(in + last + l, lane);
    rolled(0, (words + kLanes - 1) / kLanes, [&](unsigned k) {
      const std::uint32_t i = kLanes * k + l;
      if (i >= words) return;
      const std::uint64_t pair =
          static_cast<std::uint64_t>(X::load(from + i + 1, lane)) << 32 | X::load(from + i, lane);
      to[i] = static_cast<std::uint32_t>(pair >> (8 * first));
    });
  });
}

template <class T>
[[gnu::always_inline]] constexpr void put_lane_bytes(std::uint8_t* out, T value) {
  unroll<sizeof(T)>([&](auto k) { out[k] = static_cast<std::uint8_t>(value >> (8 * k)); });
}

/// Writes the exceptions part; `refused` holds a row's lanes in each lane.
template <class X, TileShape S, class Bits>
constexpr std::uint8_t* put_lane_exceptions(const Bits* tile, const LanePlace& place,
                                            const typename X::template vec<std::uint32_t>& refused, std::uint8_t* out) {
  typename X::template vec<bool> used;
  X::lanes([&](auto lane) { X::set(used, lane, X::get(refused, lane) != 0); });
  const std::uint32_t rows = X::ballot(used);
  X::lanes([&](auto lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    if (l == 0) put_lane_bytes(out, rows);
    if ((rows >> l & 1) != 0) put_lane_bytes(out + 4 + 4 * popcount(rows & bits_below(l)), X::get(refused, lane));
  });
  out += 4 + 4 * popcount(rows);
  rolled(0, kRows, [&](unsigned r) {
    const std::uint32_t mask = X::broadcast(refused, r);
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
constexpr std::uint8_t* put_lane_signs(const typename X::template vec<std::uint32_t>& minus, const LaneTileInfo& info,
                                       std::uint8_t* out) {
  X::lanes([&](auto lane) {
    if (lane == 0) out[0] = static_cast<std::uint8_t>(info.sign_part);
  });
  std::uint8_t* const level2 = out + 1;
  if (info.sign_part == SignPart::dense) {
    X::lanes([&](auto lane) { put_lane_bytes(level2 + 4 * lane, X::get(minus, lane)); });
  } else if (info.sign_part != SignPart::all_minus) {
    SparseWord<X> s;
    measure_sparse<X>(minus, s);
    std::uint8_t* const level1 = level2 + 2;
    std::uint8_t* const bytes = level1 + popcount(s.top);
    put_sparse_word<X>(
        minus, s, [&](std::uint32_t i, auto, std::uint8_t v) { level2[i] = v; },
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

/// Where the tiles' parts stand in their chunk, and the chunk's size.
struct LaneChunkPlan {
  std::uint32_t bytes = 0;  ///< of the chunk
  bool constant = false;    ///< the chunk is one seed
  std::uint32_t heads[kMaxTilesPerChunk];
  std::uint32_t payloads[kMaxTilesPerChunk];
};

/// Plans a chunk of `tiles` tiles given the infos of all; lanes write `plan`, which they share.
template <class X>
constexpr void plan_lane_chunk(const LaneTileInfo* infos, std::uint32_t tiles, LaneChunkPlan& plan) {
  // Bytes of heads and of payloads side by side: a head has at most 16, a payload is less than 2^16.
  constexpr unsigned kHeadShift = 21;
  static_assert(kMaxTilesPerChunk * kMaxHeadBytes < 1u << (32 - kHeadShift));
  typename X::template vec<std::uint32_t> own, sum;
  typename X::template vec<bool> differs;
  X::lanes([&](auto lane) {
    const auto t = static_cast<std::uint32_t>(lane);
    X::set(own, lane, t < tiles ? head_bytes(infos, t) << kHeadShift | infos[t].head.payload : 0u);
    X::set(differs, lane, t < tiles && (!infos[t].head.constant() || infos[t].head.seed != infos[0].head.seed));
  });
  sum = own;
  X::inclusive_scan(sum);
  const std::uint32_t total = X::broadcast(sum, kLanes - 1);
  const std::uint32_t payloads = total & ((1u << kHeadShift) - 1);
  const std::uint32_t heads = total >> kHeadShift;
  const bool constant = !X::any(differs);
  X::lanes([&](auto lane) {
    if (lane == 0) {
      plan.constant = constant;
      plan.bytes = 1 + (constant ? leb128_bytes(zigzag64(infos[0].head.seed)) : heads + payloads);
    }
    if (lane >= tiles) return;
    const std::uint32_t before = X::get(sum, lane) - X::get(own, lane);
    plan.heads[lane] = 1 + (before >> kHeadShift);
    plan.payloads[lane] = 1 + heads + (before & ((1u << kHeadShift) - 1));
  });
}

/// Writes the form of a planned chunk and what comes before payloads: heads, a tile by each lane, or the chunk's seed.
template <class X>
constexpr void put_lane_heads(const LaneChunkPlan& plan, const LaneTileInfo* infos, std::uint32_t tiles,
                              std::uint8_t* out) {
  X::lanes([&](auto lane) {
    const auto t = static_cast<std::uint32_t>(lane);
    if (t == 0) out[0] = plan.constant ? kFormConstant : kFormTiles;
    if (plan.constant) {
      if (t == 0) put_leb128(out + 1, zigzag64(infos[0].head.seed));
    } else if (t < tiles) {
      put_head(out + plan.heads[t], infos[t].head, t == 0 ? 0 : infos[t - 1].head.seed);
    }
  });
}

/// Writes a tile's payload to its place in the chunk at `out`.
template <class X, TileShape S, class Bits>
constexpr void place_lanes(const LaneChunkPlan& plan, const LaneTileInfo& info, std::uint32_t tile, const Bits* chunk,
                           const LanePlace& place, LaneBuffer<CodeWord<Bits>>& buffer, std::uint8_t* out) {
  if (plan.constant) return;
  std::uint8_t* at = out + plan.payloads[tile];
  typename X::template vec<std::uint32_t> mark;
  if (info.sign_bytes != 0) {
    const bool stored = info.sign_part != SignPart::all_minus;
    X::lanes([&](auto lane) { X::set(mark, lane, stored ? X::load(buffer.minus + lane, lane) : 0u); });
    at = put_lane_signs<X>(mark, info, at);
  }
  if (info.head.exceptions) {
    X::lanes([&](auto lane) { X::set(mark, lane, X::load(buffer.refused + lane, lane)); });
    at = put_lane_exceptions<X, S>(chunk + place.offset, place, mark, at);
  }
  copy_lanes<X>(at, buffer.bytes(), info.plane_bytes);
}

}  // namespace quern::kernels
