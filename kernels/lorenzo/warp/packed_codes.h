// Prediction of a staged tile two codes at a time, for a warp, over an execution model X: same residuals as predict.h,
// where the rules are explained. Word i of a lane has row i in its low half and row i + 16 in its high half. Words are
// added and subtracted modulo 2^32: a word of residuals is high * 65536 + low, low being signed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/predict.h"
#include "kernels/lorenzo/warp/staged_codes.h"

namespace quern::kernels {

inline constexpr unsigned kPairs = kRows / 2;

/// Two rows a word. Halves must be in the order of the codes: where the tile's codes lie on both sides of a multiple of
/// 65536, half of that is added to all of them.
template <class X, class V>
constexpr void pack_codes(const CodeRange& range, const V (&codes)[kRows], V (&words)[kPairs]) {
  X::lanes([&](auto lane) {
    unroll<kPairs>([&](auto i) {
      X::set(words[i], lane, X::permute_bytes(X::get(codes[i], lane), X::get(codes[i + kPairs], lane), 0x5410));
    });
  });
  if ((range.low ^ range.high) >> 16 == 0) return;
  X::lanes([&](auto lane) {
    unroll<kPairs>([&](auto i) { X::set(words[i], lane, X::get(words[i], lane) ^ 0x80008000u); });
  });
}

/// The word that holds the rows `Back` before those of word I; a low half that has no such row is 0.
template <class X, unsigned Back, std::size_t I, class V>
[[gnu::always_inline]] constexpr std::uint32_t rows_before(const V (&w)[kPairs], std::size_t lane) {
  if constexpr (I >= Back) {
    return X::get(w[I - Back], lane);
  } else {
    return X::get(w[I + kPairs - Back], lane) << 16;
  }
}

/// Differences along y, given those along z.
template <class X, TileShape S, Predictor P, std::size_t I, class V>
[[gnu::always_inline]] constexpr std::uint32_t packed_rows(const V (&d)[kPairs], std::size_t lane) {
  using Rule = RowRule<P, rows_per_plane(S)>;
  std::uint32_t value = X::get(d[I], lane);
  // A low half without a row before it keeps its value: rows_before gives 0 there.
  if constexpr (Rule::use_y(I + kPairs)) value -= rows_before<X, 1, I>(d, lane);
  if constexpr (Rule::use_yy(I + kPairs)) {
    constexpr std::uint32_t kTakes = Rule::use_yy(I) ? 0xffffffffu : 0xffff0000u;
    value -= (rows_before<X, 1, I>(d, lane) & kTakes) - rows_before<X, 2, I>(d, lane);
  }
  return value;
}

/// What lane 0 follows in rows without a row difference.
template <class X, TileShape S, Predictor P, std::size_t I, class V>
[[gnu::always_inline]] constexpr std::uint32_t packed_fill(const V (&w)[kPairs], std::size_t lane) {
  using Rule = RowRule<P, rows_per_plane(S)>;
  constexpr std::size_t kLow = Rule::before(I), kHigh = Rule::before(I + kPairs);
  if constexpr (Rule::use_rows(I + kPairs)) {
    return X::get(w[kLow], lane) & 0xffffu;
  } else if constexpr (kHigh == kLow + kPairs) {
    return X::get(w[kLow], lane);
  } else {
    return X::permute_bytes(X::get(w[kLow], lane), X::get(w[kHigh], lane), 0x5410);
  }
}

/// Boxes: plane and block tiles.
template <class X, TileShape S, Predictor P, class V>
constexpr void packed_box(const V (&w)[kPairs], V (&e)[kPairs]) {
  using Rule = RowRule<P, rows_per_plane(S)>;
  V d[kPairs];
  X::lanes([&](auto lane) {
    unroll<kPairs>([&](auto i) {
      std::uint32_t value = X::get(w[i], lane);
      if constexpr (Rule::kZ) value -= rows_before<X, rows_per_plane(TileShape::block), decltype(i)::value>(w, lane);
      X::set(d[i], lane, value);
    });
  });
  unroll<kPairs>([&](auto ic) {
    constexpr std::size_t I = decltype(ic)::value;
    constexpr bool kLowX = Rule::use_x(I), kHighX = Rule::use_x(I + kPairs);
    X::lanes([&](auto lane) { X::set(e[I], lane, packed_rows<X, S, P, I>(d, lane)); });
    if constexpr (Rule::use_rows(I) && kHighX) {
      X::minus_left(e[I], e[I]);
    } else if constexpr (kLowX) {
      V fill;
      X::lanes([&](auto lane) { X::set(fill, lane, packed_fill<X, S, P, I>(w, lane)); });
      constexpr std::uint32_t kTakes = kHighX ? 0xffffffffu : 0x0000ffffu;
      X::zip_left(
          e[I], [](std::uint32_t own, std::uint32_t left) { return own - (left & kTakes); }, e[I], fill);
      if constexpr (P == Predictor::xx)
        X::zip_left_keep_two(
            e[I], [](std::uint32_t own, std::uint32_t left) { return own - left; }, e[I]);
    }
  });
}

/// Lines: a lane's rows are neighbours, and row 0 follows the last row of the lane before.
template <class X, Predictor P, class V>
constexpr void packed_line(const V (&w)[kPairs], V (&e)[kPairs]) {
  const std::uint32_t seed = X::broadcast(w[0], 0);
  V seeds, link;
  X::lanes([&](auto lane) { X::set(seeds, lane, seed << 16); });
  X::shift_up(link, w[kPairs - 1], seeds);
  // Low: the row before row 0; high: row 15, which row 16 follows.
  X::lanes([&](auto lane) {
    X::set(link, lane, X::permute_bytes(X::get(link, lane), X::get(w[kPairs - 1], lane), 0x5432));
    unroll<kPairs>([&](auto i) {
      const V& before = i == 0 ? link : w[i == 0 ? 0 : i - 1];
      X::set(e[i], lane, X::get(w[i], lane) - X::get(before, lane));
    });
  });
  if constexpr (P == Predictor::xx) {
    V zero, last;
    X::lanes([&](auto lane) {
      X::set(zero, lane, 0u);
      X::set(last, lane, (X::get(w[kPairs - 1], lane) >> 16) - (X::get(w[kPairs - 2], lane) >> 16));
    });
    X::shift_up(last, last, zero);
    X::lanes([&](auto lane) {
      std::uint32_t before = (X::get(e[kPairs - 1], lane) << 16) + X::get(last, lane);
      unroll<kPairs>([&](auto i) {
        const std::uint32_t own = X::get(e[i], lane);
        X::set(e[i], lane, own - before);
        before = own;
      });
    });
  }
}

/// Residuals under a predictor, not yet zigzagged. Predictors that do not fit the shape must not come.
template <class X, TileShape S, class V>
[[gnu::always_inline]] constexpr void packed_residuals(Predictor predictor, const V (&w)[kPairs], V (&e)[kPairs]) {
  with_predictor(predictor, [&]<Predictor P>() {
    if constexpr (P == Predictor::none) {
      const std::uint32_t first = X::broadcast(w[0], 0);
      const std::uint32_t both = X::permute_bytes(first, 0, 0x1010);
      X::lanes([&](auto lane) { unroll<kPairs>([&](auto i) { X::set(e[i], lane, X::get(w[i], lane) - both); }); });
    } else if constexpr (!predictor_fits(P, S)) {
      return;
    } else if constexpr (S == TileShape::line) {
      packed_line<X, P>(w, e);
    } else {
      packed_box<X, S, P>(w, e);
    }
  });
}

/// From residuals to numbers that are not below 0, once for bytes and once for halves.
inline constexpr std::uint32_t kByteBias = 0x00800080u;
inline constexpr std::uint32_t kHalfBias = 0x80008000u;

/// Adds kByteBias to all residuals; whether they all fit 8 bits.
template <class X, class V>
constexpr bool bias_residuals(V (&e)[kPairs]) {
  typename X::template vec<bool> outside;
  X::lanes([&](auto lane) {
    std::uint32_t over = 0;
    unroll<kPairs>([&](auto i) {
      const std::uint32_t biased = X::get(e[i], lane) + kByteBias;
      X::set(e[i], lane, biased);
      over |= biased;
    });
    X::set(outside, lane, (over & 0xff00ff00u) != 0);
  });
  return !X::any(outside);
}

/// Bytes of a plane group: bytes[j] has a byte of rows j, j + 8, j + 16 and j + 24; `any` what occurs in them.
template <class V>
struct PlaneBytes {
  V bytes[8];
  V any;
};

/// Zigzags biased residuals of 8 bits.
template <class X, class V>
constexpr void take_bytes(const V (&e)[kPairs], PlaneBytes<V>& out) {
  X::lanes([&](auto lane) {
    std::uint32_t any = 0;
    unroll<8>([&](auto j) {
      const std::uint32_t biased = X::permute_bytes(X::get(e[j], lane), X::get(e[j + 8], lane), 0x6240);
      // A biased byte has its sign bit where the residual has none.
      const std::uint32_t positive = X::permute_bytes(biased, 0, 0xba98);
      const std::uint32_t zigzagged = ((biased + biased) & 0xfefefefeu) ^ ~positive;
      X::set(out.bytes[j], lane, zigzagged);
      any |= zigzagged;
    });
    X::set(out.any, lane, any);
  });
}

/// The zigzagged halves of a word of biased residuals.
template <class X>
[[gnu::always_inline]] constexpr std::uint32_t zigzag_halves(std::uint32_t biased) {
  const std::uint32_t b = biased + (kHalfBias - kByteBias);
  return ((b + b) & 0xfffefffeu) ^ ~X::permute_bytes(b, 0, 0xbb99);
}

/// Plane bytes of biased residuals of 16 bits that are not 0, in all lanes together.
template <class X, class V>
constexpr std::uint32_t count_half_bytes(const V (&e)[kPairs]) {
  typename X::template vec<std::uint32_t> count;
  X::lanes([&](auto lane) {
    // Halves of word 0: groups 0 and 2, of word 1: groups 1 and 3.
    std::uint32_t any[2] = {0, 0};
    unroll<kPairs>([&](auto i) { any[i / 8] |= zigzag_halves<X>(X::get(e[i], lane)); });
    X::set(count, lane, static_cast<std::uint32_t>(popcount(any[0]) + popcount(any[1])));
  });
  return X::reduce_add(count);
}

/// Zigzags biased residuals of 16 bits.
template <class X, class V>
constexpr void take_halves(const V (&e)[kPairs], PlaneBytes<V> (&out)[2]) {
  X::lanes([&](auto lane) {
    std::uint32_t any[2] = {0, 0};
    unroll<8>([&](auto j) {
      const std::uint32_t first = zigzag_halves<X>(X::get(e[j], lane));
      const std::uint32_t second = zigzag_halves<X>(X::get(e[j + 8], lane));
      const std::uint32_t low = X::permute_bytes(first, second, 0x6240);
      const std::uint32_t high = X::permute_bytes(first, second, 0x7351);
      X::set(out[0].bytes[j], lane, low);
      X::set(out[1].bytes[j], lane, high);
      any[0] |= low;
      any[1] |= high;
    });
    X::set(out[0].any, lane, any[0]);
    X::set(out[1].any, lane, any[1]);
  });
}

}  // namespace quern::kernels
