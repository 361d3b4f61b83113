// What a tile would cost under each predictor, for a warp, over an execution model X: the estimate that plans choose
// from. Twin of estimate_tile in cpu/lorenzo_encode.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/core/bits.h"
#include "kernels/core/lane_elements.h"
#include "kernels/core/lane_planes.h"
#include "kernels/core/lane_predict.h"

namespace quern::kernels {

/// Plane bytes of the codes in the cells under one predictor, and how many planes there are.
struct LanePredictorCost {
  std::uint32_t bytes = 0;
  std::uint32_t planes = 0;
};

template <class X, class A, TileShape S>
constexpr LanePredictorCost predictor_cost(Predictor predictor, const std::uint32_t* cells, A seed,
                                           const typename X::template vec<std::uint32_t>& column, bool full) {
  typename X::template vec<A> all;
  typename X::template vec<std::uint32_t> bytes;
  X::lanes([&](auto lane) {
    X::set(all, lane, A{0});
    X::set(bytes, lane, 0u);
  });
  LaneWindow<X, A> w;
  open_window<X, A, S>(cells, seed, w);
  rolled(0, kGroups, [&](unsigned g) {
    load_group<X, A>(cells, g, w.rows);
    typename X::template vec<A> e[kGroupRows];
    group_residuals<X, A, S>(predictor, seed, w, g == 0, e);
    if (!full) mask_residuals<X, A>(column, g, e);
    X::lanes([&](auto lane) {
      A any = 0;
      unroll<kGroupRows>([&](auto j) { any |= X::get(e[j], lane); });
      X::set(all, lane, static_cast<A>(X::get(all, lane) | any));
      X::set(bytes, lane, X::get(bytes, lane) + static_cast<std::uint32_t>(popcount(any)));
    });
    shift_rows<S>(w.rows, w.above);
  });
  return {X::reduce_add(bytes), static_cast<std::uint32_t>(bit_length(X::reduce_or(all)))};
}

/// Estimates one tile; bytes[p] (kPredictors numbers in memory that the lanes share) is what it takes under predictor
/// p, UINT32_MAX where p does not fit. `buffer` is scratch.
template <class X, TileShape S, class Bits>
constexpr void estimate_lanes(const ChunkRules& rules, const Bits* chunk, const LanePlace& place,
                              LaneBuffer<CodeWord<Bits>>& buffer, std::uint32_t* bytes) {
  using W = CodeWord<Bits>;
  LaneMarks<X> marks;
  std::uint32_t extra = 0;
  rolled(0, 2, [&](unsigned round) {
    QuantizerKind kind = rules.quantizer;
    if (round == 1) {
      extra = marks.refused_count * static_cast<std::uint32_t>(sizeof(Bits) + 1);
      if (marks.refused_count * kLaneExceptionShare <= place.elems()) return;
      extra = 0;
      kind = QuantizerKind::exact;
    }
    read_lanes<X, S>(rules.element, kind, rules.params, chunk + place.offset, place, buffer.cells(), marks);
  });
  typename X::template vec<std::uint32_t> column;
  existing_rows<X, S>(place, column);
  const W seed = load_same_cell<X, W>(buffer.cells(), lane_cell(0, 0));
  rolled(0, kPredictors, [&](unsigned p) {
    const auto predictor = static_cast<Predictor>(p);
    std::uint32_t estimate = UINT32_MAX;
    if (predictor_fits(predictor, S)) {
      const LanePredictorCost cost = predictor_cost<X, W, S>(predictor, buffer.cells(), seed, column, place.full);
      estimate = cost.bytes + cost.bytes / 8 + 2 * cost.planes + 6 + extra;
    }
    X::lanes([&](auto lane) {
      if (lane == 0) bytes[p] = estimate;
    });
  });
}

}  // namespace quern::kernels
