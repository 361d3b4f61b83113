// Decoding a tile with a warp, over an execution model X; twin of cpu/lorenzo_decode.h. Residuals lie in registers
// until they are codes. The bytes are hostile: every count is compared with what is left before it is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/warp/decode_area.h"
#include "kernels/lorenzo/warp/plane_decode.h"
#include "kernels/lorenzo/warp/reconstruct.h"
#include "kernels/lorenzo/warp/stage.h"
#include "kernels/lorenzo/warp/tile.h"
#include "kernels/lorenzo/warp/write.h"

namespace quern::kernels {

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
template <class X, class Word>
constexpr bool get_lane_signs(LaneBytes& in, LaneDecodeArea<Word>& area,
                              typename X::template vec<std::uint32_t>& minus) {
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
  const std::uint32_t bytes = in.left < kMaxSparseBytes ? in.left : kMaxSparseBytes;
  PlaneReader<X, StagedBytes> reader;
  if (!reader.open(stage_bytes<X>(in.at, bytes, area.cells), bytes, 1, 0)) return false;
  reader.expand(0, 1, 0, area.slots);
  if (!reader.sound()) return false;
  X::sync();
  const std::uint32_t flip = part == SignPart::sparse_complement ? 0xffffffffu : 0u;
  X::lanes([&](auto lane) { X::set(minus, lane, X::load(area.slots + lane, lane) ^ flip); });
  X::sync();
  in.skip(reader.used());
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

/// Planes in words of 32 bits, or distances of 32 bits, to codes in the cells; false on bytes no encoder writes.
template <class X, TileShape S, class Word>
constexpr bool decode_cells(const TileHead& head, const LaneBytes& in, std::uint32_t seed, LaneDecodeArea<Word>& area) {
  // What is refused would not end with the planes.
  if (head.planes > 32 || in.left > kMaxStagedBytes) return false;
  PlaneReader<X, StagedBytes> reader;
  typename X::template vec<std::uint32_t> rows[kRows];
  if (!reader.open(stage_bytes<X>(in.at, in.left, area.cells), in.left, head.planes, head.dense)) return false;
  reader.read_rows(0, area.slots, rows);
  if (!reader.finished()) return false;
  reconstruct<X, std::uint32_t, S>(head.predictor, seed, rows, area.cells);
  return true;
}

/// The same with words of 64 bits, whose planes are read where they are stored: they could fill the area.
template <class X, TileShape S>
constexpr bool decode_wide_cells(const TileHead& head, const LaneBytes& in, LaneDecodeArea<std::uint64_t>& area) {
  PlaneReader<X, StoredBytes> reader;
  if (!reader.open({in.at}, in.left, head.planes, head.dense)) return false;
  const auto cell = [](auto row, auto lane) {
    return code_cell(static_cast<unsigned>(row), static_cast<unsigned>(lane));
  };
  rolled(0, 2, [&](unsigned half) {
    typename X::template vec<std::uint32_t> rows[kRows];
    reader.read_rows(half, area.slots, rows);
    X::lanes([&](auto lane) {
      unroll<kRows>(
          [&](auto row) { X::store(area.cells + half * kCodeCells + cell(row, lane), lane, X::get(rows[row], lane)); });
    });
  });
  if (!reader.finished()) return false;
  typename X::template vec<std::uint64_t> rows[kRows];
  X::lanes([&](auto lane) {
    unroll<kRows>([&](auto row) {
      X::set(rows[row], lane,
             X::load(area.cells + cell(row, lane), lane) |
                 static_cast<std::uint64_t>(X::load(area.cells + kCodeCells + cell(row, lane), lane)) << 32);
    });
  });
  X::sync();
  reconstruct<X, std::uint64_t, S>(head.predictor, head.seed, rows, area.cells);
  return true;
}

/// Decodes one tile; false on bytes no encoder writes. What is passed by reference is read where it is needed, since
/// residuals leave few registers; `payload` is shared by the lanes and used up.
template <class X, TileShape S, class Bits>
constexpr bool decode_lanes(const ChunkRules& rules, const TileHead& head, LaneBytes& payload, const LanePlace& place,
                            LaneDecodeArea<CodeWord<Bits>>& area, void* const& values) {
  using W = CodeWord<Bits>;
  constexpr bool kLong = sizeof(W) == 8;
  if (!predictor_fits(head.predictor, S) || (head.wide && !kLong)) return false;
  if (head.signs && (rules.quantizer != QuantizerKind::pointwise || head.exact)) return false;
  LaneBytes in = payload;
  typename X::template vec<std::uint32_t> minus;
  X::lanes([&](auto lane) { X::set(minus, lane, 0u); });
  if (head.signs) {
    if (!get_lane_signs<X>(in, area, minus)) return false;
    X::sync();  // all lanes have read it
    X::lanes([&](auto lane) {
      if (lane == 0) payload = in;
    });
    X::sync();
  }
  if (head.exceptions && !check_lane_exceptions<X, S>(in, sizeof(Bits), place)) return false;
  const CellCodes<W> codes{area.cells, static_cast<W>(head.seed), kLong && !head.wide};
  if constexpr (kLong) {
    if (head.wide ? !decode_wide_cells<X, S>(head, in, area) : !decode_cells<X, S>(head, in, 0u, area)) return false;
  } else {
    if (!decode_cells<X, S>(head, in, static_cast<std::uint32_t>(head.seed), area)) return false;
  }
  if (S == TileShape::line && head.signs) transpose_lane_bits<X>(minus);
  Bits* const tile = static_cast<Bits*>(values) + place.offset;
  const bool packs = place.full && packs_aligned(S, place.stride_z, place.stride_y, tile, sizeof(Bits));
  write_lanes<X, S, false>(rules.element, head.exact ? QuantizerKind::exact : rules.quantizer, rules.params, codes,
                           minus, head.signs, place, packs, tile,
                           [](auto* at, auto lane, const auto& pack) { X::store(at, lane, pack); });
  if (head.exceptions) write_lane_exceptions<X, S>(payload.at, place, tile);
  return true;
}

}  // namespace quern::kernels
