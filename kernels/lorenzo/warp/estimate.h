// What a tile would cost under each predictor, for a warp, over an execution model X: the estimate that plans choose
// from. Twin of estimate_tile in cpu/lorenzo_encode.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/warp/encode.h"

namespace quern::kernels {

/// Estimates one tile; bytes[p] (kPredictors numbers in memory that the lanes share) is what it takes under predictor
/// p, UINT32_MAX where p does not fit. `buffer` is scratch.
template <class X, TileShape S, class Bits>
constexpr void estimate_lanes(const ChunkRules& rules, const Bits* chunk, const LanePlace& place,
                              LaneBuffer<CodeWord<Bits>>& buffer, std::uint32_t* bytes) {
  using W = CodeWord<Bits>;
  LaneMarks<X> marks;
  LaneCodes<X, std::uint32_t> codes;
  read_tile<X, S>(rules, chunk + place.offset, place, buffer, codes, marks);
  const std::uint32_t extra = marks.refused_count * static_cast<std::uint32_t>(sizeof(Bits) + 1);
  typename X::template vec<std::uint32_t> column;
  existing_rows<X, S>(place, column);
  const auto result = [&](unsigned p, std::uint32_t plane_bytes, std::uint32_t planes) {
    X::lanes([&](auto lane) {
      if (lane == 0) bytes[p] = plane_bytes + plane_bytes / 8 + 2 * planes + 6 + extra;
    });
  };
  X::lanes([&](auto lane) {
    if (lane < kPredictors && !predictor_fits(static_cast<Predictor>(lane), S)) bytes[lane] = UINT32_MAX;
  });
  if constexpr (sizeof(W) == 8) {
    const W seed = load_same_cell<X, W>(buffer.cells(), lane_cell(0, 0));
    X::sync();
    rolled(0, kPredictors, [&](unsigned p) {
      if (!predictor_fits(static_cast<Predictor>(p), S)) return;
      const auto cost = predictor_cost<X, W, S>(static_cast<Predictor>(p), buffer.cells(), seed, column, place.full);
      result(p, cost.bytes, cost.planes);
    });
  } else {
    open_codes<X, S>(codes);
    rolled(0, kPredictors, [&](unsigned p) {
      if (!predictor_fits(static_cast<Predictor>(p), S)) return;
      const auto cost = predictor_cost<X, S>(static_cast<Predictor>(p), codes, buffer.cells(), place);
      result(p, cost.bytes, cost.planes);
    });
  }
}

}  // namespace quern::kernels
