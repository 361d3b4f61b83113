// Prediction on the cells of a tile, for a warp, over an execution model X: same residuals as predict.h, where the
// rules are explained; reconstruct.h is the inverse. Rows come in groups of 8 with what is needed of the group
// before kept beside them. A lane of a line tile runs along its own column, so a first difference there is one between
// rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/predict.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

/// Rows of a group in arithmetic word A, and of the group before it.
template <class X, class A>
struct LaneWindow {
  using V = typename X::template vec<A>;
  V rows[kGroupRows];
  V above[kGroupRows];
};

/// Starts a window in front of group 0. Lines: the rows before are the last two of the lane before, or the seed.
template <class X, class A, TileShape S>
constexpr void open_window(const std::uint32_t* cells, A seed, LaneWindow<X, A>& w) {
  X::lanes([&](auto lane) {
    unroll<kGroupRows>([&](auto j) { X::set(w.above[j], lane, A{0}); });
    if constexpr (S == TileShape::line) {
      unroll<2>([&](auto k) {
        const unsigned row = kRows - 2 + static_cast<unsigned>(k);
        const A before =
            lane == 0 ? seed : load_cell<X, A>(cells, lane_cell(row, static_cast<unsigned>(lane) - 1), lane);
        X::set(w.above[kGroupRows - 2 + k], lane, before);
      });
    }
  });
  if constexpr (S == TileShape::line) X::sync();  // the cells may be overwritten from here on
}

/// Loads a group's rows as they lie in the cells.
template <class X, class A, class V>
constexpr void load_group(const std::uint32_t* cells, unsigned group, V (&rows)[kGroupRows]) {
  X::lanes([&](auto lane) {
    unroll<kGroupRows>([&](auto j) {
      const unsigned row = kGroupRows * group + static_cast<unsigned>(j);
      X::set(rows[j], lane, load_cell<X, A>(cells, lane_cell(row, static_cast<unsigned>(lane)), lane));
    });
  });
}
template <class X, class A, class V>
constexpr void store_group(std::uint32_t* cells, unsigned group, const V (&rows)[kGroupRows]) {
  X::lanes([&](auto lane) {
    unroll<kGroupRows>([&](auto j) {
      const unsigned row = kGroupRows * group + static_cast<unsigned>(j);
      store_cell<X, A>(cells, lane_cell(row, static_cast<unsigned>(lane)), lane, X::get(rows[j], lane));
    });
  });
}
/// The group's rows become those above; blocks need all of them, others the last two.
template <TileShape S, class V>
constexpr void shift_rows(const V (&rows)[kGroupRows], V (&above)[kGroupRows]) {
  unroll<kGroupRows>([&](auto j) {
    if constexpr (S == TileShape::block || j >= kGroupRows - 2) above[j] = rows[j];
  });
}

/// A predictor taken apart for one group: differences between rows, differences along x, and what the rows without any
/// row difference follow.
struct GroupRule {
  Predictor between = Predictor::none;  ///< none, y, z, yz or yy
  std::uint32_t falls_back = 0;         ///< bit j: row j has no row difference, so lane 0 follows the row before
  std::uint32_t along_x = 0;            ///< bit j: row j is differenced along x
  bool twice = false;                   ///< xx
};

template <TileShape S>
[[gnu::always_inline]] constexpr GroupRule group_rule(Predictor p, bool first) {
  GroupRule rule;
  const auto axes = static_cast<unsigned>(p);
  if (p == Predictor::none) return rule;
  if constexpr (S == TileShape::line) {
    // A lane runs along its column: differences along the line are differences between rows.
    rule.between = p == Predictor::xx ? Predictor::yy : Predictor::y;
    return rule;
  }
  rule.twice = p == Predictor::xx;
  if (p == Predictor::yy) {
    rule.between = p;
  } else if (!rule.twice) {
    // The first plane of a block has none before it: its rows do without z.
    rule.between = static_cast<Predictor>(axes & (S == TileShape::block && first ? 2u : 6u));
  }
  const bool y_alone = rule.between == Predictor::y || rule.between == Predictor::yy;
  if (rule.between == Predictor::none) rule.falls_back = 0xff;
  if (y_alone && (S == TileShape::block || first)) rule.falls_back = 1;
  rule.along_x = rule.twice || (axes < 8 && (axes & 1) != 0) ? 0xff : rule.falls_back;
  return rule;
}

/// Calls f.template operator()<P>() for the differences between rows.
template <TileShape S, class F>
constexpr void with_row_differences(Predictor between, F&& f) {
  switch (between) {
    case Predictor::y: f.template operator()<Predictor::y>(); break;
    case Predictor::yy: f.template operator()<Predictor::yy>(); break;
    case Predictor::z:
      if constexpr (S == TileShape::block) f.template operator()<Predictor::z>();
      break;
    case Predictor::yz:
      if constexpr (S == TileShape::block) f.template operator()<Predictor::yz>();
      break;
    default: break;
  }
}

/// Whether a row of the same plane lies `up` rows above row J of a group.
template <TileShape S>
[[gnu::always_inline]] constexpr bool has_row_above(std::size_t j, std::size_t up, bool first) {
  return S == TileShape::line || j >= up || (S == TileShape::plane && !first);
}

/// The row `Up` rows above row J, where `rows` are those of the group and `above` those of the group before.
template <std::size_t J, std::size_t Up, class V>
[[gnu::always_inline]] constexpr const V& row_above(const V (&rows)[kGroupRows], const V (&above)[kGroupRows]) {
  if constexpr (J >= Up) {
    return rows[J - Up];
  } else {
    return above[kGroupRows + J - Up];
  }
}

/// Zigzagged residuals of the group in the window.
template <class X, class A, TileShape S, class V>
constexpr void group_residuals(Predictor p, A seed, const LaneWindow<X, A>& w, bool first, V (&e)[kGroupRows]) {
  const GroupRule rule = group_rule<S>(p, first);
  X::lanes([&](auto lane) {
    const A origin = p == Predictor::none ? seed : A{0};
    unroll<kGroupRows>([&](auto j) { X::set(e[j], lane, static_cast<A>(X::get(w.rows[j], lane) - origin)); });
  });
  with_row_differences<S>(rule.between, [&]<Predictor P>() {
    constexpr bool kY = P != Predictor::z;
    constexpr bool kZ = P == Predictor::z || P == Predictor::yz;
    X::lanes([&](auto lane) {
      unroll<kGroupRows>([&](auto j) {
        constexpr std::size_t J = decltype(j)::value;
        A value = X::get(e[J], lane);
        if (kY && has_row_above<S>(J, 1, first))
          value = static_cast<A>(value - X::get(row_above<J, 1>(w.rows, w.above), lane));
        if (P == Predictor::yy && has_row_above<S>(J, 2, first))
          value = static_cast<A>(value - X::get(row_above<J, 1>(w.rows, w.above), lane) +
                                 X::get(row_above<J, 2>(w.rows, w.above), lane));
        if constexpr (kZ) value = static_cast<A>(value - X::get(w.above[J], lane));
        if constexpr (kZ && kY && J > 0) value = static_cast<A>(value + X::get(w.above[J - 1], lane));
        X::set(e[J], lane, value);
      });
    });
  });
  const auto minus_left = [](A current, A left) { return static_cast<A>(current - left); };
  if constexpr (S != TileShape::line) {
    unroll<kGroupRows>([&](auto j) {
      constexpr std::size_t J = decltype(j)::value;
      if ((rule.along_x >> J & 1) == 0) return;
      V before;  // of lane 0
      X::lanes([&](auto lane) {
        const A followed = J > 0                   ? X::get(row_above<J, 1>(w.rows, w.above), lane)
                           : first                 ? X::get(w.rows[0], lane)
                           : S == TileShape::block ? X::get(w.above[0], lane)
                                                   : X::get(row_above<J, 1>(w.rows, w.above), lane);
        X::set(before, lane, (rule.falls_back >> J & 1) != 0 ? followed : A{0});
      });
      X::zip_left(e[J], minus_left, e[J], before);
    });
    if (rule.twice) unroll<kGroupRows>([&](auto j) { X::zip_left_keep_two(e[j], minus_left, e[j]); });
  }
  X::lanes([&](auto lane) { unroll<kGroupRows>([&](auto j) { X::set(e[j], lane, zigzag<A>(X::get(e[j], lane))); }); });
}

/// Clears residuals of positions that do not exist.
template <class X, class A, class V>
constexpr void mask_residuals(const typename X::template vec<std::uint32_t>& column, unsigned group,
                              V (&e)[kGroupRows]) {
  X::lanes([&](auto lane) {
    const std::uint32_t exists = X::get(column, lane) >> (kGroupRows * group);
    unroll<kGroupRows>([&](auto j) {
      X::set(e[j], lane, static_cast<A>(X::get(e[j], lane) & static_cast<A>(A{0} - (exists >> j & 1))));
    });
  });
}

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

/// Codes in the cells become residuals under the candidate whose planes have the fewest bytes, the first of them;
/// returns which it is.
template <class X, class A, TileShape S>
constexpr Predictor predict_cells(const ChunkRules& rules, std::uint32_t* cells, A seed,
                                  const typename X::template vec<std::uint32_t>& column, bool full) {
  const auto count = static_cast<unsigned>(rules.candidate_count);
  Predictor best = rules.candidates[0];
  std::uint32_t best_bytes = UINT32_MAX;
  rolled(0, count == 1 ? 0 : count, [&](unsigned c) {
    const std::uint32_t bytes = predictor_cost<X, A, S>(rules.candidates[c], cells, seed, column, full).bytes;
    if (bytes >= best_bytes) return;
    best_bytes = bytes;
    best = rules.candidates[c];
  });
  LaneWindow<X, A> w;
  open_window<X, A, S>(cells, seed, w);
  rolled(0, kGroups, [&](unsigned g) {
    load_group<X, A>(cells, g, w.rows);
    typename X::template vec<A> e[kGroupRows];
    group_residuals<X, A, S>(best, seed, w, g == 0, e);
    if (!full) mask_residuals<X, A>(column, g, e);
    store_group<X, A>(cells, g, e);
    shift_rows<S>(w.rows, w.above);
  });
  X::sync();
  return best;
}

}  // namespace quern::kernels
