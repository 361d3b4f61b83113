// Lorenzo prediction of a tile's codes and its inverse, over an execution model X (see kernels/README.md).
// All arithmetic wraps around in the word type W, so every integer is allowed and both directions are exact. Rows are
// anything with operator[](row) that gives an X::vec<W>: a pointer on the CPU, registers or shared memory on CUDA.
//
// Missing neighbours: an axis whose neighbour lies outside the tile is left out of the product. A row that is left with
// no axis at all falls back to x; lane 0 of such a row follows lane 0 of the row before it (y - 1, or z - 1 in the
// first row of a plane). Element 0 is the tile's seed and has residual 0.
#pragma once

#include <cstddef>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/tile.h"

namespace quern::kernels {

/// Which differences row `r` takes part in for predictor P on planes of PlaneRows rows.
template <Predictor P, unsigned PlaneRows>
struct RowRule {
  static constexpr bool kX = P == Predictor::xx || (P != Predictor::yy && (static_cast<unsigned>(P) & 1) != 0);
  static constexpr bool kY = P == Predictor::yy || (P != Predictor::xx && (static_cast<unsigned>(P) & 2) != 0);
  static constexpr bool kZ = static_cast<unsigned>(P) < 8 && (static_cast<unsigned>(P) & 4) != 0;

  static constexpr bool has_y(std::size_t r) { return r % PlaneRows != 0; }
  static constexpr bool has_z(std::size_t r) { return r >= PlaneRows; }
  static constexpr bool use_y(std::size_t r) { return kY && has_y(r); }
  static constexpr bool use_yy(std::size_t r) { return P == Predictor::yy && r % PlaneRows >= 2; }
  static constexpr bool use_z(std::size_t r) { return kZ && has_z(r); }
  static constexpr bool use_rows(std::size_t r) { return use_y(r) || use_z(r); }
  static constexpr bool use_x(std::size_t r) { return kX || !use_rows(r); }
  /// The row that lane 0 follows when the row has no row difference.
  static constexpr std::size_t before(std::size_t r) { return has_y(r) ? r - 1 : has_z(r) ? r - PlaneRows : r; }
};

/// Box tiles (plane and block): residuals, already zigzagged, of codes q[32] into z[32].
template <class X, class W, Predictor P, unsigned PlaneRows, class In, class Out>
constexpr void predict_box(const In& q, Out&& z) {
  using V [[maybe_unused]] = typename X::template vec<W>;
  using Rule = RowRule<P, PlaneRows>;
  X::rows([&](auto row) {
    const std::size_t r = row;
    const auto at = [&](std::size_t back) -> const auto& { return q[r >= back ? r - back : 0]; };
    V e;
    if (Rule::use_y(r) && Rule::use_z(r)) {
      X::map(
          e, [](W a, W b, W c, W d) { return static_cast<W>(a - b - c + d); }, q[r], at(1), at(PlaneRows),
          at(PlaneRows + 1));
    } else if (Rule::use_yy(r)) {
      X::map(
          e, [](W a, W b, W c) { return static_cast<W>(a - 2 * b + c); }, q[r], at(1), at(2));
    } else if (Rule::use_y(r)) {
      X::map(
          e, [](W a, W b) { return static_cast<W>(a - b); }, q[r], at(1));
    } else if (Rule::use_z(r)) {
      X::map(
          e, [](W a, W b) { return static_cast<W>(a - b); }, q[r], at(PlaneRows));
    }
    const auto difference = [](W current, W left) { return zigzag<W>(current - left); };
    if (Rule::use_rows(r)) {
      if (Rule::use_x(r)) {
        X::zip_left_from_zero(z[r], difference, e);
      } else {
        X::map(
            z[r], [](W a) { return zigzag<W>(a); }, e);
      }
    } else if (P == Predictor::xx) {
      // Differences, then differences of those from lane 2 on; lanes 0 and 1 keep the first difference.
      X::zip_left(
          e, [](W current, W left) { return static_cast<W>(current - left); }, q[r], q[Rule::before(r)]);
      X::zip_left_keep_two(
          z[r], [](W current, W left) { return zigzag<W>(current - left); }, e);
    } else {
      X::zip_left(z[r], difference, q[r], q[Rule::before(r)]);
    }
  });
}

/// Inverse of predict_box: residuals z[32] (zigzagged) and the seed give codes q[32].
template <class X, class W, Predictor P, unsigned PlaneRows, class In, class Out>
constexpr void reconstruct_box(const In& z, W seed, Out&& q) {
  using V [[maybe_unused]] = typename X::template vec<W>;
  using Rule = RowRule<P, PlaneRows>;
  X::rows([&](auto row) {
    const std::size_t r = row;
    const auto at = [&](std::size_t back) -> const auto& { return q[r >= back ? r - back : 0]; };
    V e;
    X::map(
        e, [](W a) { return unzigzag<W>(a); }, z[r]);
    if (Rule::use_x(r)) {
      if (P == Predictor::xx && !Rule::use_rows(r)) X::scan_skipping_first(e);
      if (!Rule::use_rows(r)) {
        if (r == 0) {
          X::add_to_first(e, seed);
        } else {
          X::add_first_of(e, q[Rule::before(r)]);
        }
      }
      X::inclusive_scan(e);
    }
    if (Rule::use_y(r) && Rule::use_z(r)) {
      X::map(
          q[r], [](W a, W b, W c, W d) { return static_cast<W>(a + b + c - d); }, e, at(1), at(PlaneRows),
          at(PlaneRows + 1));
    } else if (Rule::use_yy(r)) {
      X::map(
          q[r], [](W a, W b, W c) { return static_cast<W>(a + 2 * b - c); }, e, at(1), at(2));
    } else if (Rule::use_y(r)) {
      X::map(
          q[r], [](W a, W b) { return static_cast<W>(a + b); }, e, at(1));
    } else if (Rule::use_z(r)) {
      X::map(
          q[r], [](W a, W b) { return static_cast<W>(a + b); }, e, at(PlaneRows));
    } else {
      X::map(
          q[r], [](W a) { return a; }, e);
    }
  });
}

/// Line tiles, first or second difference. Left of a lane's first row lies the last row of the lane before it.
template <class X, class W, Predictor P, class In, class Out>
constexpr void predict_line(const In& q, Out&& z) {
  using V [[maybe_unused]] = typename X::template vec<W>;
  V one_left, two_left;
  X::shift_up(one_left, q[kRows - 1], q[0]);
  if constexpr (P == Predictor::xx) X::shift_up(two_left, q[kRows - 2], q[0]);
  X::rows([&](auto row) {
    const std::size_t r = row;
    const V& a = r >= 1 ? q[r >= 1 ? r - 1 : 0] : one_left;
    if constexpr (P == Predictor::xx) {
      const V& b = r >= 2 ? q[r >= 2 ? r - 2 : 0] : r == 1 ? one_left : two_left;
      X::map(
          z[r], [](W c, W l, W ll) { return zigzag<W>(c - 2 * l + ll); }, q[r], a, b);
    } else {
      X::map(
          z[r], [](W c, W l) { return zigzag<W>(c - l); }, q[r], a);
    }
  });
}

/// Running sum along a line tile in place, starting from `start`.
template <class X, class W, class InOut>
constexpr void sum_line(InOut&& v, W start) {
  using V [[maybe_unused]] = typename X::template vec<W>;
  X::rows([&](auto row) {
    const std::size_t r = row;
    if (r > 0)
      X::map(
          v[r], [](W a, W b) { return static_cast<W>(a + b); }, v[r], v[r >= 1 ? r - 1 : 0]);
  });
  V total = v[kRows - 1];
  X::inclusive_scan(total);
  V carry;
  V zero;
  X::map(
      zero, [](W a) { return static_cast<W>(a & 0); }, total);
  X::shift_up(carry, total, zero);
  X::rows([&](auto row) {
    const std::size_t r = row;
    X::map(
        v[r], [start](W a, W b) { return static_cast<W>(a + b + start); }, v[r], carry);
  });
}

template <class X, class W, Predictor P, class In, class Out>
constexpr void reconstruct_line(const In& z, W seed, Out&& q) {
  X::rows([&](auto row) {
    const std::size_t r = row;
    X::map(
        q[r], [](W a) { return unzigzag<W>(a); }, z[r]);
  });
  if constexpr (P == Predictor::xx) sum_line<X, W>(q, W{0});
  sum_line<X, W>(q, seed);
}

/// No prediction: distance from the seed.
template <class X, class W, class In, class Out>
constexpr void predict_none(const In& q, W seed, Out&& z) {
  X::rows([&](auto row) {
    const std::size_t r = row;
    X::map(
        z[r], [seed](W a) { return zigzag<W>(a - seed); }, q[r]);
  });
}
template <class X, class W, class In, class Out>
constexpr void reconstruct_none(const In& z, W seed, Out&& q) {
  X::rows([&](auto row) {
    const std::size_t r = row;
    X::map(
        q[r], [seed](W a) { return static_cast<W>(unzigzag<W>(a) + seed); }, z[r]);
  });
}

/// Calls `f.template operator()<P>()` for the predictor's constant.
template <class F>
constexpr void with_predictor(Predictor p, F&& f) {
  switch (p) {
    case Predictor::none: f.template operator()<Predictor::none>(); break;
    case Predictor::x: f.template operator()<Predictor::x>(); break;
    case Predictor::y: f.template operator()<Predictor::y>(); break;
    case Predictor::xy: f.template operator()<Predictor::xy>(); break;
    case Predictor::z: f.template operator()<Predictor::z>(); break;
    case Predictor::xz: f.template operator()<Predictor::xz>(); break;
    case Predictor::yz: f.template operator()<Predictor::yz>(); break;
    case Predictor::xyz: f.template operator()<Predictor::xyz>(); break;
    case Predictor::xx: f.template operator()<Predictor::xx>(); break;
    case Predictor::yy: f.template operator()<Predictor::yy>(); break;
  }
}

/// Forward prediction of a tile of shape S, predictor known at run time (it must fit the shape).
template <class X, class W, TileShape S, class In, class Out>
constexpr void predict(Predictor p, const In& q, W seed, Out&& z) {
  with_predictor(p, [&]<Predictor P>() {
    if constexpr (P == Predictor::none) {
      predict_none<X, W>(q, seed, z);
    } else if constexpr (!predictor_fits(P, S)) {
      return;
    } else if constexpr (S == TileShape::line) {
      predict_line<X, W, P>(q, z);
    } else {
      predict_box<X, W, P, rows_per_plane(S)>(q, z);
    }
  });
}

template <class X, class W, TileShape S, class In, class Out>
constexpr void reconstruct(Predictor p, const In& z, W seed, Out&& q) {
  with_predictor(p, [&]<Predictor P>() {
    if constexpr (P == Predictor::none) {
      reconstruct_none<X, W>(z, seed, q);
    } else if constexpr (!predictor_fits(P, S)) {
      return;
    } else if constexpr (S == TileShape::line) {
      reconstruct_line<X, W, P>(z, seed, q);
    } else {
      reconstruct_box<X, W, P, rows_per_plane(S)>(z, seed, q);
    }
  });
}

}  // namespace quern::kernels
