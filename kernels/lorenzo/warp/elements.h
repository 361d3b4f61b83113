// Between an array's elements and the cells of a tile, for a warp: quantizing with the exceptions marked; write.h
// is the way back. Over an execution model X; twin of cpu/tile_io.h. Templates are over the element's width: which
// quantizer it is, is asked once a tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

/// Share of a tile's elements that may be exceptions before it is stored exactly instead: 1/4.
inline constexpr std::uint32_t kLaneExceptionShare = 4;

/// What the quantizer left besides codes, as bits: bit r of lane l is (row r, lane l).
template <class X>
struct LaneMarks {
  typename X::template vec<std::uint32_t> refused;
  typename X::template vec<std::uint32_t> minus;
  std::uint32_t refused_count = 0;
};

template <class X>
constexpr void clear_marks(LaneMarks<X>& marks) {
  X::lanes([&](auto lane) {
    X::set(marks.refused, lane, 0u);
    X::set(marks.minus, lane, 0u);
  });
  marks.refused_count = 0;
}

/// Calls f.template operator()<Q>() with the quantizer of an element type as wide as Bits.
template <class Bits, class F>
constexpr void with_lane_quantizer(Element element, QuantizerKind kind, F&& f) {
  with_quantizer(element, kind, [&]<class Q, class Exact>() {
    if constexpr (std::is_same_v<typename Q::Bits, Bits>) f.template operator()<Q>();
  });
}

/// Quantizes all runs: codes to their cells; bit i of lane l of the masks is (run i, element l). The quantizer is
/// looked up for each group, so that loads and stores are there once for all of them.
template <class X, TileShape S, class Bits>
constexpr void quantize_runs(Element element, QuantizerKind kind, const QuantizerParams& params, const Bits* tile,
                             const LanePlace& place, const typename X::template vec<std::uint32_t>& exists,
                             std::uint32_t* cells, LaneMarks<X>& marks) {
  using Word = CodeWord<Bits>;
  rolled(0, kGroups, [&](unsigned g) {
    typename X::template vec<Bits> elements[kGroupRows];
    typename X::template vec<Word> codes[kGroupRows];
    typename X::template vec<std::uint32_t> refused, minus;
    X::lanes([&](auto lane) {
      const Bits* at = tile + group_offset<S>(place, g) + lane;
      const std::uint32_t own = X::get(exists, lane) >> (kGroupRows * g);
      unroll<kGroupRows>([&](auto j) {
        X::set(elements[j], lane, (own >> j & 1) != 0 ? *at : Bits{0});
        at += run_step<S>(place);
      });
      X::set(minus, lane, 0u);
    });
    with_lane_quantizer<Bits>(element, kind, [&]<class Q>() {
      const Q quantizer = make_quantizer<Q>(params);
      X::lanes([&](auto lane) {
        std::uint32_t no = 0;
        [[maybe_unused]] std::uint32_t negative = 0;
        unroll<kGroupRows>([&](auto j) {
          const Bits bits = X::get(elements[j], lane);
          Word code = 0;
          no |= (quantizer.encode(bits, code) ? 0u : 1u) << j;
          if constexpr (Q::kHasSign) negative |= (Q::sign(bits) ? 1u : 0u) << j;
          X::set(codes[j], lane, code);
        });
        X::set(refused, lane, no);
        if constexpr (Q::kHasSign) X::set(minus, lane, negative);
      });
    });
    X::lanes([&](auto lane) {
      const std::uint32_t own = X::get(exists, lane) >> (kGroupRows * g);
      unroll<kGroupRows>([&](auto j) {
        store_cell<X, Word>(cells, run_cell<S>(kGroupRows * g + j, lane), lane,
                            (own >> j & 1) != 0 ? X::get(codes[j], lane) : Word{0});
      });
      const unsigned shift = kGroupRows * g;
      X::set(marks.refused, lane, X::get(marks.refused, lane) | (X::get(refused, lane) & own) << shift);
      X::set(marks.minus, lane, X::get(marks.minus, lane) | (X::get(minus, lane) & own) << shift);
    });
  });
}

/// Takes marks back where the exact decision accepts the element.
template <class X, TileShape S, class Bits>
constexpr void look_again(Element element, QuantizerKind kind, const QuantizerParams& params, const Bits* tile,
                          const LanePlace& place, LaneMarks<X>& marks) {
  with_lane_quantizer<Bits>(element, kind, [&]<class Q>() {
    const Q quantizer = make_quantizer<Q>(params);
    X::lanes([&](auto lane) {
      std::uint32_t refused = X::get(marks.refused, lane);
      for (std::uint32_t rest = refused; rest != 0; rest &= rest - 1) {
        const auto run = static_cast<std::size_t>(lowest_bit(rest));
        if (quantizer.accepts_exactly(tile[run_offset<S>(place, run) + lane])) refused &= ~(rest & (0 - rest));
      }
      X::set(marks.refused, lane, refused);
    });
  });
}

/// Codes of refused elements repeat the code before in the order of the array; those before all others take the first.
template <class X, TileShape S, class Word>
constexpr void fill_refused(const typename X::template vec<std::uint32_t>& exists, const LaneMarks<X>& marks,
                            std::uint32_t* cells) {
  const auto ballot_bit = [](const auto& mask, unsigned bit) {
    typename X::template vec<bool> flag;
    X::lanes([&](auto lane) { X::set(flag, lane, (X::get(mask, lane) >> bit & 1) != 0); });
    return X::ballot(flag);
  };
  Word carry = 0;
  bool found = false;
  X::sync();
  rolled(0, 2 * kRows, [&](unsigned i) {
    const unsigned run = i % kRows;
    const std::uint32_t here = ballot_bit(exists, run);
    const std::uint32_t bad = ballot_bit(marks.refused, run);
    unsigned from = 0;
    if (i < kRows) {  // looks for the first code
      if (found || (here & ~bad) == 0) return;
      found = true;
      from = lowest_bit(here & ~bad);
    } else {
      if (here == 0) return;
      X::lanes([&](auto lane) {
        if ((bad >> lane & 1) == 0) return;
        const std::uint32_t good = ~bad & bits_below(lane);
        Word code = carry;
        if (good != 0) code = load_cell<X, Word>(cells, run_cell<S>(run, bit_length(good) - 1), lane);
        store_cell<X, Word>(cells, run_cell<S>(run, lane), lane, code);
      });
      X::sync();
      from = bit_length(here) - 1;
    }
    carry = load_same_cell<X, Word>(cells, run_cell<S>(run, from));
  });
}

/// Reads a tile through the quantizer of an element type and kind: codes to their cells, marks by row and lane.
template <class X, TileShape S, class Bits>
constexpr void read_lanes(Element element, QuantizerKind kind, const QuantizerParams& params, const Bits* tile,
                          const LanePlace& place, std::uint32_t* cells, LaneMarks<X>& marks) {
  clear_marks<X>(marks);
  typename X::template vec<std::uint32_t> exists;
  existing_runs<X, S>(place, exists);
  quantize_runs<X, S>(element, kind, params, tile, place, exists, cells, marks);
  if (X::reduce_or(marks.refused) != 0) look_again<X, S>(element, kind, params, tile, place, marks);
  if (X::reduce_or(marks.refused) != 0) {
    marks.refused_count = count_lane_bits<X>(marks.refused);
    fill_refused<X, S, CodeWord<Bits>>(exists, marks, cells);
  }
  X::sync();
  if constexpr (S == TileShape::line) {
    if (marks.refused_count != 0) transpose_lane_bits<X>(marks.refused);
    if (kind == QuantizerKind::pointwise) transpose_lane_bits<X>(marks.minus);
  }
}

/// The quantizer that full tiles are read through without a look at single elements.
using FullTileQuantizer = AbsQuantizer32<Binary32>;
[[gnu::always_inline]] constexpr bool reads_full_lanes(Element element, QuantizerKind kind) {
  return element == Element::f32 && kind == QuantizerKind::absolute;
}

/// Reads a full tile of binary32 under an absolute bound: codes, plus FullTileQuantizer::kZeroPattern, to registers,
/// row r of a lane to codes[r]. False when some element may be an exception; then read_lanes is to be asked. `cells` is
/// scratch.
template <class X, TileShape S, class V>
constexpr bool read_full_lanes(const QuantizerParams& params, const std::uint32_t* tile, const LanePlace& place,
                               std::uint32_t* cells, V (&codes)[kRows]) {
  const FullTileQuantizer quantizer(params);
  typename X::template vec<bool> refused;
  X::lanes([&](auto lane) {
    unroll<kGroups>([&](auto g) {
      const std::uint32_t* at = tile + group_offset<S>(place, g) + lane;
      unroll<kGroupRows>([&](auto j) {
        X::set(codes[kGroupRows * g + j], lane, *at);
        at += run_step<S>(place);
      });
    });
    bool good = true;
    unroll<kRows>([&](auto r) {
      std::uint32_t code = 0;
      good = quantizer.encode_pattern(X::get(codes[r], lane), code) & good;
      X::set(codes[r], lane, code);
    });
    X::set(refused, lane, !good);
  });
  if (X::any(refused)) return false;
  if constexpr (S == TileShape::line) {
    X::lanes([&](auto lane) {
      unroll<kRows>([&](auto r) { X::store(cells + run_cell<S>(r, lane), lane, X::get(codes[r], lane)); });
    });
    X::sync();
    load_rows<X>(cells, codes);
    X::sync();
  }
  return true;
}

}  // namespace quern::kernels
