// Decoding a chunk with a warp for each tile: one lane reads all heads, then every warp decodes its tile. Over an
// execution model X; twin of cpu/lorenzo_decode.h. The bytes are hostile: every count is compared with what is left
// before it is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/core/bits.h"
#include "kernels/core/lane_elements.h"
#include "kernels/core/lane_planes.h"
#include "kernels/core/lane_predict.h"

namespace quern::kernels {

/// Heads of a chunk's tiles and where their payloads begin.
struct LaneHeads {
  TileHead heads[kMaxTilesPerChunk];
  std::uint32_t begins[kMaxTilesPerChunk];
};

/// Reads the heads; false when the chunk is not made of exactly these parts. `bytes` is below 2^32.
[[gnu::always_inline]] constexpr bool read_heads(const std::uint8_t* in, std::uint32_t bytes, std::uint32_t tiles,
                                                 LaneHeads& out) {
  if (bytes < 1 || tiles > kMaxTilesPerChunk) return false;
  const std::uint8_t* at = in + 1;
  const std::uint8_t* const end = in + bytes;
  if (in[0] == kFormConstant) {
    std::uint64_t z = 0;
    if (!get_leb128(at, end, z) || at != end) return false;
    for (std::uint32_t t = 0; t < tiles; ++t) {
      out.heads[t] = TileHead{};
      out.heads[t].seed = unzigzag64(z);
      out.begins[t] = bytes;
    }
    return true;
  }
  if (in[0] != kFormTiles) return false;
  std::uint64_t seed = 0;
  for (std::uint32_t t = 0; t < tiles; ++t) {
    if (!get_head(at, end, out.heads[t], seed)) return false;
    seed = out.heads[t].seed;
  }
  std::uint64_t begin = static_cast<std::uint64_t>(at - in);
  for (std::uint32_t t = 0; t < tiles; ++t) {
    out.begins[t] = static_cast<std::uint32_t>(begin);
    begin += out.heads[t].payload;
    if (begin > bytes) return false;
  }
  return begin == bytes;
}

/// Masks of an exceptions part whose rows are at `at`: a row's lanes in each lane. The u32 of listed rows must be
/// there.
template <class X>
constexpr void exception_masks(const std::uint8_t* at, std::uint32_t rows,
                               typename X::template vec<std::uint32_t>& masks) {
  X::lanes([&](auto lane) {
    const auto before = popcount(rows & bits_below(lane));
    X::set(masks, lane, (rows >> lane & 1) != 0 ? load_u32(at + 4 + 4 * before) : 0u);
  });
}

/// Steps over the exceptions part; false when it is not well formed.
template <class X, TileShape S>
constexpr bool check_lane_exceptions(LaneBytes& in, std::uint32_t element_size, const LanePlace& place) {
  if (in.left < 4) return false;
  const std::uint32_t rows = load_u32(in.at);
  const std::uint32_t masks_bytes = 4 + 4 * popcount(rows);
  if (rows == 0 || in.left < masks_bytes) return false;
  typename X::template vec<std::uint32_t> exists, masks;
  existing_rows<X, S>(place, exists);
  transpose_lane_bits<X>(exists);
  exception_masks<X>(in.at, rows, masks);
  typename X::template vec<bool> bad;
  X::lanes([&](auto lane) {
    const std::uint32_t mask = X::get(masks, lane);
    X::set(bad, lane, ((rows >> lane & 1) != 0 && mask == 0) || (mask & ~X::get(exists, lane)) != 0);
  });
  if (X::any(bad)) return false;
  const std::uint32_t bytes = masks_bytes + count_lane_bits<X>(masks) * element_size;
  if (in.left < bytes) return false;
  in.skip(bytes);
  return true;
}

/// Reads the signs part: bit r of lane l is the sign of (row r, lane l). False when it is not well formed.
template <class X>
constexpr bool get_lane_signs(LaneBytes& in, typename X::template vec<std::uint32_t>& minus) {
  if (in.left < 1) return false;
  const auto part = static_cast<SignPart>(*in.at);
  in.skip(1);
  if (part == SignPart::all_minus) {
    X::lanes([&](auto lane) { X::set(minus, lane, 0xffffffffu); });
    return true;
  }
  if (part == SignPart::dense) {
    if (in.left < kPlaneBytes) return false;
    X::lanes([&](auto lane) { X::set(minus, lane, load_u32(in.at + 4 * lane)); });
    in.skip(static_cast<std::uint32_t>(kPlaneBytes));
    return true;
  }
  if (part != SignPart::sparse && part != SignPart::sparse_complement) return false;
  SparseCursor cursor;
  if (!open_sparse<X>(in, 0, 1, cursor) || !get_sparse_lanes<X>(cursor, minus)) return false;
  in.skip(cursor.bytes);
  if (part == SignPart::sparse_complement) X::lanes([&](auto lane) { X::set(minus, lane, ~X::get(minus, lane)); });
  return true;
}

/// Overlays the exceptions of the part at `at`, which was checked.
template <class X, TileShape S, class Bits>
constexpr void write_lane_exceptions(const std::uint8_t* at, const LanePlace& place, Bits* tile) {
  const std::uint32_t rows = load_u32(at);
  typename X::template vec<std::uint32_t> masks;
  exception_masks<X>(at, rows, masks);
  const std::uint8_t* values = at + 4 + 4 * popcount(rows);
  X::sync();
  rolled(0, kRows, [&](unsigned r) {
    const std::uint32_t mask = X::broadcast(masks, r);
    X::lanes([&](auto lane) {
      if ((mask >> lane & 1) == 0) return;
      const std::uint8_t* in = values + sizeof(Bits) * popcount(mask & bits_below(lane));
      Bits bits = 0;
      unroll<sizeof(Bits)>([&](auto k) { bits = static_cast<Bits>(bits | static_cast<Bits>(in[k]) << (8 * k)); });
      tile[cell_offset<S>(place, r, lane)] = bits;
    });
    values += sizeof(Bits) * popcount(mask);
  });
}

/// Brings the codes of a tile to its cells; false on bytes no encoder writes.
template <class X, TileShape S, class Word>
constexpr bool decode_cells(const TileHead& head, LaneBytes in, std::uint32_t* cells, CellCodes<Word>& codes) {
  const bool narrow = sizeof(Word) == 8 && !head.wide;
  codes = {cells, static_cast<Word>(head.seed), narrow};
  const unsigned halves = sizeof(Word) == 8 && head.wide ? 2 : 1;
  if (!get_lane_planes<X>(in, head.planes, head.dense, halves, cells)) return false;
  if (sizeof(Word) == 8 && head.wide) {
    reconstruct_cells<X, Word, S>(head.predictor, cells, codes.seed);
  } else {
    reconstruct_cells<X, std::uint32_t, S>(head.predictor, cells, narrow ? 0u : static_cast<std::uint32_t>(codes.seed));
  }
  return true;
}

/// Decodes one tile; false on bytes no encoder writes.
template <class X, TileShape S, class Bits>
constexpr bool decode_lanes(const ChunkRules& rules, const TileHead& head, LaneBytes in, const LanePlace& place,
                            LaneArea<CodeWord<Bits>>& area, Bits* chunk) {
  using W = CodeWord<Bits>;
  if (!predictor_fits(head.predictor, S) || (head.wide && sizeof(W) < 8)) return false;
  if (head.signs && (rules.quantizer != QuantizerKind::pointwise || head.exact)) return false;
  typename X::template vec<std::uint32_t> minus;
  X::lanes([&](auto lane) { X::set(minus, lane, 0u); });
  if (head.signs && !get_lane_signs<X>(in, minus)) return false;
  const std::uint8_t* const exceptions = in.at;
  if (head.exceptions && !check_lane_exceptions<X, S>(in, sizeof(Bits), place)) return false;
  CellCodes<W> codes;
  if (!decode_cells<X, S>(head, in, area.cells, codes)) return false;
  if (S == TileShape::line && head.signs) transpose_lane_bits<X>(minus);
  write_lanes<X, S>(rules.element, head.exact ? QuantizerKind::exact : rules.quantizer, rules.params, codes, minus,
                    place, chunk + place.offset);
  if (head.exceptions) write_lane_exceptions<X, S>(exceptions, place, chunk + place.offset);
  return true;
}

}  // namespace quern::kernels
