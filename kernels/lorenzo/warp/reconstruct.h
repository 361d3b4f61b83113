// Undoing prediction, for a warp, over an execution model X: residuals in registers, row r of lane l in v[r] (tile.h),
// become codes in memory that the lanes share, in the order of the array. The rules are those of predict.h. Sums along
// different axes commute: those along y and z are taken in registers, those along x by lanes that have a row each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/lorenzo/predict.h"
#include "kernels/lorenzo/warp/decode_area.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

/// Codes of A in the cells: words of 64 bits as two halves.
template <class X, class A>
[[gnu::always_inline]] constexpr void store_code(std::uint32_t* cells, unsigned cell, std::size_t lane, A code) {
  X::store(cells + cell, lane, static_cast<std::uint32_t>(code));
  if constexpr (sizeof(A) == 8) X::store(cells + kCodeCells + cell, lane, static_cast<std::uint32_t>(code >> 32));
}

/// Four codes of a run, from a multiple of four on.
template <class X, class A>
[[gnu::always_inline]] constexpr void load_four(const std::uint32_t* cells, unsigned cell, std::size_t lane,
                                                A (&codes)[4]) {
  const auto low = X::load(reinterpret_cast<const LaneQuad*>(cells + cell), lane);
  unroll<4>([&](auto k) { codes[k] = low.at[k]; });
  if constexpr (sizeof(A) == 8) {
    const auto high = X::load(reinterpret_cast<const LaneQuad*>(cells + kCodeCells + cell), lane);
    unroll<4>([&](auto k) { codes[k] |= static_cast<A>(high.at[k]) << 32; });
  }
}
template <class X, class A>
[[gnu::always_inline]] constexpr void store_four(std::uint32_t* cells, unsigned cell, std::size_t lane,
                                                 const A (&codes)[4]) {
  LaneQuad quad;
  unroll<4>([&](auto k) { quad.at[k] = static_cast<std::uint32_t>(codes[k]); });
  X::store(reinterpret_cast<LaneQuad*>(cells + cell), lane, quad);
  if constexpr (sizeof(A) == 8) {
    unroll<4>([&](auto k) { quad.at[k] = static_cast<std::uint32_t>(codes[k] >> 32); });
    X::store(reinterpret_cast<LaneQuad*>(cells + kCodeCells + cell), lane, quad);
  }
}

/// Line tiles: a lane's rows become their sums from the tile's first row on, and `start`.
template <class X, class A, class V>
constexpr void sum_line(V (&v)[kRows], A start) {
  V before;
  X::lanes([&](auto lane) {
    A sum = 0;
    unroll<kRows>([&](auto r) { sum = static_cast<A>(sum + X::get(v[r], lane)); });
    X::set(before, lane, sum);
  });
  X::exclusive_scan(before);
  X::lanes([&](auto lane) {
    A sum = static_cast<A>(X::get(before, lane) + start);
    unroll<kRows>([&](auto r) {
      sum = static_cast<A>(sum + X::get(v[r], lane));
      X::set(v[r], lane, sum);
    });
  });
}

template <class X, class A, class V>
constexpr void reconstruct_line(Predictor p, A seed, V (&v)[kRows], std::uint32_t* cells) {
  if (p == Predictor::none) {
    X::lanes([&](auto lane) {
      unroll<kRows>([&](auto r) { X::set(v[r], lane, static_cast<A>(X::get(v[r], lane) + seed)); });
    });
  } else {
    const unsigned begin = p == Predictor::xx ? 0 : 1;
    rolled(begin, 2, [&](unsigned i) { sum_line<X, A>(v, i == 1 ? seed : A{0}); });
  }
  X::lanes([&](auto lane) {
    unroll<kRows / 4>([&](auto j) {
      A codes[4];
      unroll<4>([&](auto k) { codes[k] = X::get(v[4 * j + k], lane); });
      store_four<X, A>(cells, code_cell(static_cast<unsigned>(lane), 4 * j), lane, codes);
    });
  });
  X::sync();
}

/// What is undone of a box tile's prediction besides differences along x of all rows.
struct BoxRule {
  bool x = false;             ///< differences along x in all rows
  bool y = false;             ///< differences along y
  bool z = false;             ///< differences along z
  bool rows_alone = false;    ///< rows without any row difference follow the row before at lane 0: all rows of ...
  bool planes_alone = false;  ///< ... all planes; else those of the first plane
};
[[gnu::always_inline]] constexpr BoxRule box_rule(Predictor p) {
  const auto axes = static_cast<unsigned>(p);
  BoxRule rule;
  rule.x = p == Predictor::xx || (axes < 8 && (axes & 1) != 0);
  rule.y = p == Predictor::yy || (axes < 8 && (axes & 2) != 0);
  rule.z = axes < 8 && (axes & 4) != 0;
  rule.rows_alone = p != Predictor::none && !rule.y;
  rule.planes_alone = p != Predictor::none && !rule.z;
  return rule;
}

/// Box tiles: everything but differences along x of all rows, and the second ones.
template <class X, class A, TileShape S, class V>
constexpr void reconstruct_columns(Predictor p, const BoxRule& rule, A seed, V (&v)[kRows]) {
  constexpr unsigned kPlane = rows_per_plane(S);
  constexpr bool kBlock = S == TileShape::block;
  const auto add_row = [&](auto lane, auto row, std::size_t back) {
    X::set(v[row], lane, static_cast<A>(X::get(v[row], lane) + X::get(v[row - back], lane)));
  };
  // What rows without a row difference follow at lane 0.
  X::lanes([&](auto lane) {
    if (p == Predictor::none)
      unroll<kRows>([&](auto r) { X::set(v[r], lane, static_cast<A>(X::get(v[r], lane) + seed)); });
    if (p == Predictor::none || lane != 0) return;
    X::set(v[0], lane, static_cast<A>(X::get(v[0], lane) + seed));
    if constexpr (kBlock) {
      if (rule.planes_alone)
        unroll<3>([&](auto z) { add_row(lane, std::integral_constant<std::size_t, kPlane*(z + 1)>{}, kPlane); });
    }
    unroll<kRows>([&](auto r) {
      if constexpr (r % kPlane != 0) {
        if (rule.rows_alone && (r < kPlane || rule.planes_alone)) add_row(lane, r, 1);
      }
    });
  });
  // Those rows are differences along x in any case.
  if (p != Predictor::none && !rule.x) {
    X::inclusive_scan(v[0]);
    if constexpr (kBlock) {
      if (rule.planes_alone) unroll<3>([&](auto z) { X::inclusive_scan(v[kPlane * (z + 1)]); });
      if (rule.rows_alone) unroll<kPlane - 1>([&](auto r) { X::inclusive_scan(v[r + 1]); });
    }
  }
  X::lanes([&](auto lane) {
    if (p == Predictor::yy)
      unroll<kRows>([&](auto r) {
        if constexpr (r % kPlane >= 2) add_row(lane, r, 1);
      });
    if (rule.y)
      unroll<kRows>([&](auto r) {
        if constexpr (r % kPlane != 0) add_row(lane, r, 1);
      });
    if (kBlock && rule.z)
      unroll<kRows>([&](auto r) {
        if constexpr (kBlock && r >= kPlane) add_row(lane, r, kPlane);
      });
  });
}

/// The same as reconstruct_columns, with the predictor as a constant: no branch but one for lane 0.
template <class X, Predictor P, TileShape S, class V>
constexpr void sum_columns(std::uint32_t seed, V (&v)[kRows]) {
  constexpr unsigned kPlane = rows_per_plane(S);
  using Rule = RowRule<P, kPlane>;
  const auto add = [&](auto lane, auto row, std::uint32_t more) __attribute__((always_inline)) {
    X::set(v[row], lane, X::get(v[row], lane) + more);
  };
  if constexpr (P == Predictor::none) {
    X::lanes([&](auto lane) { unroll<kRows>([&](auto r) { add(lane, r, seed); }); });
    return;
  }
  X::lanes([&](auto lane) {
    if (lane != 0) return;
    add(lane, std::integral_constant<std::size_t, 0>{}, seed);
    unroll<kRows>([&](auto r) {
      if constexpr (r != 0 && !Rule::use_rows(r)) add(lane, r, X::get(v[Rule::before(r)], lane));
    });
  });
  if constexpr (!Rule::kX) {
    unroll<kRows>([&](auto r) {
      if constexpr (!Rule::use_rows(r)) X::inclusive_scan(v[r]);
    });
  }
  X::lanes([&](auto lane) {
    if constexpr (P == Predictor::yy) {
      unroll<kRows>([&](auto r) {
        if constexpr (Rule::use_yy(r)) add(lane, r, X::get(v[r - 1], lane));
      });
    }
    unroll<kRows>([&](auto r) {
      if constexpr (Rule::use_y(r)) add(lane, r, X::get(v[r - 1], lane));
    });
    unroll<kRows>([&](auto r) {
      if constexpr (Rule::use_z(r)) add(lane, r, X::get(v[r - kPlane], lane));
    });
  });
}

/// Differences along x undone in the cells, a row in each lane; the second ones begin at column 1.
template <class X, class A>
constexpr void sum_rows(bool twice, std::uint32_t* cells) {
  X::sync();
  const auto each_four = [&](auto&& f) {
    X::lanes([&](auto lane) {
      A sum = 0;
      A slope = 0;
      unroll<kLanes / 4>([&](auto j) {
        const unsigned cell = code_cell(static_cast<unsigned>(lane), 4 * static_cast<unsigned>(j));
        A codes[4];
        load_four<X, A>(cells, cell, lane, codes);
        unroll<4>([&](auto k) {
          f(4 * static_cast<unsigned>(j) + static_cast<unsigned>(k), codes[k], slope, sum);
          codes[k] = sum;
        });
        store_four<X, A>(cells, cell, lane, codes);
      });
    });
  };
  if (twice) {
    each_four([](unsigned x, A residual, A& slope, A& sum) {
      if (x > 0) slope = static_cast<A>(slope + residual);
      sum = static_cast<A>(sum + (x > 0 ? slope : residual));
    });
  } else {
    each_four([](unsigned, A residual, A&, A& sum) { sum = static_cast<A>(sum + residual); });
  }
}

template <class X, class A, TileShape S, bool Straight, class V>
constexpr void reconstruct_box(Predictor p, A seed, V (&v)[kRows], std::uint32_t* cells) {
  const BoxRule rule = box_rule(p);
  if constexpr (Straight) {
    with_predictor(p, [&]<Predictor P>() {
      if constexpr (predictor_fits(P, S)) sum_columns<X, P, S>(seed, v);
    });
  } else {
    reconstruct_columns<X, A, S>(p, rule, seed, v);
  }
  X::lanes([&](auto lane) {
    unroll<kRows>([&](auto r) {
      store_code<X, A>(cells, code_cell(static_cast<unsigned>(r), static_cast<unsigned>(lane)), lane,
                       X::get(v[r], lane));
    });
  });
  if (rule.x) sum_rows<X, A>(p == Predictor::xx, cells);
  X::sync();
}

/// Residuals become codes in the cells. `Straight`: code for each predictor, which takes no branches.
template <class X, class A, TileShape S, bool Straight = false, class V>
constexpr void reconstruct(Predictor p, A seed, V (&v)[kRows], std::uint32_t* cells) {
  if constexpr (S == TileShape::line) {
    reconstruct_line<X, A>(p, seed, v, cells);
  } else {
    reconstruct_box<X, A, S, Straight>(p, seed, v, cells);
  }
}

}  // namespace quern::kernels
