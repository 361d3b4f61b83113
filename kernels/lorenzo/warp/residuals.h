// Prediction of a tile whose codes are in registers, 32 to a lane, for a warp, over an execution model X: same
// residuals as predict.h, where the rules are explained. Straight-line code for each predictor; a tile asks once which
// it is.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/predict.h"
#include "kernels/lorenzo/warp/predict.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

/// Codes of a tile in words A, row r of a lane in rows[r]. Lines: the rows before row 0, nearest first.
template <class X, class A>
struct LaneCodes {
  typename X::template vec<A> rows[kRows];
  typename X::template vec<A> before[2];
  A zero = 0;  ///< what stands for code 0: residuals are differences and do not see it
};

/// Finds what a lane's column follows in a line tile: the last two rows of the lane before, or the seed. Returns the
/// seed's code.
template <class X, TileShape S, class A>
constexpr A open_codes(LaneCodes<X, A>& codes) {
  const A seed = X::broadcast(codes.rows[0], 0);
  if constexpr (S == TileShape::line) {
    typename X::template vec<A> seeds;
    X::lanes([&](auto lane) { X::set(seeds, lane, seed); });
    X::shift_up(codes.before[0], codes.rows[kRows - 1], seeds);
    X::shift_up(codes.before[1], codes.rows[kRows - 2], seeds);
  }
  return static_cast<A>(seed - codes.zero);
}

/// Difference of row R, not yet zigzagged. `origin` is what predictor none counts from.
template <class X, class A, TileShape S, Predictor P, std::size_t R, class V>
[[gnu::always_inline]] constexpr void row_difference(const LaneCodes<X, A>& codes, A origin, V& e) {
  const V(&q)[kRows] = codes.rows;
  if constexpr (P == Predictor::none) {
    X::lanes([&](auto lane) { X::set(e, lane, static_cast<A>(X::get(q[R], lane) - origin)); });
  } else if constexpr (S == TileShape::line) {
    const V& a = R >= 1 ? q[R >= 1 ? R - 1 : 0] : codes.before[0];
    const V& b = R >= 2 ? q[R >= 2 ? R - 2 : 0] : codes.before[R == 1 ? 0 : 1];
    X::lanes([&](auto lane) {
      if constexpr (P == Predictor::xx) {
        X::set(e, lane, static_cast<A>(X::get(q[R], lane) - 2 * X::get(a, lane) + X::get(b, lane)));
      } else {
        X::set(e, lane, static_cast<A>(X::get(q[R], lane) - X::get(a, lane)));
      }
    });
  } else {
    constexpr unsigned kPlane = rows_per_plane(S);
    using Rule = RowRule<P, kPlane>;
    constexpr std::size_t kUp = R >= 1 ? R - 1 : 0;
    constexpr std::size_t kBack = R >= kPlane ? R - kPlane : 0;
    constexpr std::size_t kBoth = R > kPlane ? R - kPlane - 1 : 0;
    if constexpr (Rule::use_rows(R)) {
      X::lanes([&](auto lane) {
        A value = X::get(q[R], lane);
        if constexpr (Rule::use_y(R)) value = static_cast<A>(value - X::get(q[kUp], lane));
        if constexpr (Rule::use_yy(R))
          value = static_cast<A>(value - X::get(q[kUp], lane) + X::get(q[R >= 2 ? R - 2 : 0], lane));
        if constexpr (Rule::use_z(R)) value = static_cast<A>(value - X::get(q[kBack], lane));
        if constexpr (Rule::use_y(R) && Rule::use_z(R)) value = static_cast<A>(value + X::get(q[kBoth], lane));
        X::set(e, lane, value);
      });
      if constexpr (Rule::use_x(R)) X::minus_left(e, e);
    } else {
      const auto minus = [](A current, A left) { return static_cast<A>(current - left); };
      X::zip_left(e, minus, q[R], q[Rule::before(R)]);
      if constexpr (P == Predictor::xx) X::zip_left_keep_two(e, minus, e);
    }
  }
}

/// Bits that occur in the residuals of each group of a lane: bit p of groups[k] says that byte k of the lane's word of
/// plane p is not 0.
template <class X, class A>
using GroupBits = typename X::template vec<A>[kGroups];

/// What a predictor makes of a tile: f(r, e) gets each row's zigzagged residuals, `bits` what occurs in them.
/// Predictors that do not fit the shape must not come.
template <class X, TileShape S, class A, class F>
[[gnu::always_inline]] constexpr void for_residuals(Predictor predictor, const LaneCodes<X, A>& codes,
                                                    GroupBits<X, A>& bits, F&& f) {
  with_predictor(predictor, [&]<Predictor P>() {
    if constexpr (predictor_fits(P, S)) {
      A origin = 0;
      if constexpr (P == Predictor::none) origin = X::broadcast(codes.rows[0], 0);
      unroll<kRows>([&](auto r) {
        constexpr std::size_t R = decltype(r)::value;
        typename X::template vec<A> e;
        row_difference<X, A, S, P, R>(codes, origin, e);
        X::lanes([&](auto lane) {
          const A residual = zigzag<A>(X::get(e, lane));
          X::set(e, lane, residual);
          X::set(bits[R / kGroupRows], lane,
                 static_cast<A>(R % kGroupRows == 0 ? residual : X::get(bits[R / kGroupRows], lane) | residual));
        });
        f(r, e);
      });
    }
  });
}

/// Planes up to the highest bit that occurs.
template <class X>
constexpr std::uint32_t count_planes(const GroupBits<X, std::uint32_t>& bits) {
  typename X::template vec<std::uint32_t> all;
  X::lanes([&](auto lane) {
    std::uint32_t any = 0;
    unroll<kGroups>([&](auto g) { any |= X::get(bits[g], lane); });
    X::set(all, lane, any);
  });
  return bit_length(X::reduce_or(all));
}

/// Bytes of planes that are not 0.
template <class X>
constexpr std::uint32_t count_plane_bytes(const GroupBits<X, std::uint32_t>& bits) {
  typename X::template vec<std::uint32_t> bytes;
  X::lanes([&](auto lane) {
    std::uint32_t sum = 0;
    unroll<kGroups>([&](auto g) { sum += popcount(X::get(bits[g], lane)); });
    X::set(bytes, lane, sum);
  });
  return X::reduce_add(bytes);
}

/// Clears residuals of positions that do not exist; bit r of lane l of `column`: whether (row r, lane l) does.
template <class X, class V>
constexpr void mask_rows(const V& column, V (&rows)[kRows]) {
  X::lanes([&](auto lane) {
    unroll<kRows>([&](auto r) {
      const auto mask = static_cast<std::uint32_t>(static_cast<std::int32_t>(X::get(column, lane) << (31 - r)) >> 31);
      X::set(rows[r], lane, X::get(rows[r], lane) & mask);
    });
  });
}

/// Plane bytes of the codes under one predictor, and how many planes there are. Tiles that are not full are asked of
/// the cells, which hold their codes too.
template <class X, TileShape S>
constexpr LanePredictorCost predictor_cost(Predictor predictor, const LaneCodes<X, std::uint32_t>& codes,
                                           const std::uint32_t* cells, const LanePlace& place) {
  if (!place.full) {
    typename X::template vec<std::uint32_t> column;
    existing_rows<X, S>(place, column);
    const std::uint32_t seed = load_same_cell<X, std::uint32_t>(cells, lane_cell(0, 0));
    return predictor_cost<X, std::uint32_t, S>(predictor, cells, seed, column, false);
  }
  GroupBits<X, std::uint32_t> bits;
  for_residuals<X, S>(predictor, codes, bits, [](auto, const auto&) {});
  return {count_plane_bytes<X>(bits), count_planes<X>(bits)};
}

/// Residuals under the candidate whose planes have the fewest bytes, the first of them; returns which it is.
template <class X, TileShape S, class V>
constexpr Predictor predict_codes(const ChunkRules& rules, const LaneCodes<X, std::uint32_t>& codes,
                                  const std::uint32_t* cells, const LanePlace& place, GroupBits<X, std::uint32_t>& bits,
                                  V (&rows)[kRows]) {
  const auto count = static_cast<unsigned>(rules.candidate_count);
  static_assert(kMaxCandidates == 4);
  std::uint32_t best = 0;  // bytes, and in the low bits the candidate
  if (count > 1) {
    best = UINT32_MAX;
    // Downwards, so that no bound takes a register.
    unsigned c = count;
    do {
      --c;
      const std::uint32_t cost = predictor_cost<X, S>(rules.candidates[c], codes, cells, place).bytes << 2 | c;
      if (cost < best) best = cost;
    } while (c != 0);
  }
  const Predictor predictor = rules.candidates[best & 3];
  for_residuals<X, S>(predictor, codes, bits, [&](auto r, const auto& e) { rows[r] = e; });
  if (!place.full) {
    typename X::template vec<std::uint32_t> column;
    existing_rows<X, S>(place, column);
    mask_rows<X>(column, rows);
    find_group_bits<X>(rows, bits);
  }
  return predictor;
}

}  // namespace quern::kernels
