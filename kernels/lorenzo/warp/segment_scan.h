// What a tile adds to the scan of its segment (kernels/mask/scan.h), by a warp, over an execution model X, so that an
// encoder need not read the array twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/bits.h"
#include "kernels/lorenzo/warp/tile.h"
#include "kernels/mask/scan.h"
#include "kernels/mask/words.h"

namespace quern::kernels {

/// Declared fill values, as bit patterns; memory that all lanes reach.
struct LaneFills {
  const std::uint64_t* bits = nullptr;
  std::uint32_t count = 0;
};

/// Counts of one tile; the same in all lanes.
struct LaneScan {
  std::uint32_t equal_pairs = 0;
  std::uint32_t negative_zeros = 0;
  bool any_mandatory = false;
};

/// The cells of run i, those that do not exist as 0, and which of them exist, a bit for each lane.
template <class X, TileShape S, class Bits>
constexpr std::uint32_t load_run(const Bits* tile, const LanePlace& place,
                                 const typename X::template vec<std::uint32_t>& exists, unsigned i,
                                 typename X::template vec<Bits>& cells) {
  typename X::template vec<bool> here;
  X::lanes([&](auto lane) {
    const bool is = (X::get(exists, lane) >> i & 1) != 0;
    X::set(here, lane, is);
    X::set(cells, lane, is ? tile[run_offset<S>(place, i) + lane] : Bits{0});
  });
  return X::ballot(here);
}

/// Equal pairs of neighbours in the pieces that are looked at: one run in eight. `phase` is y + x / 32 of the tile's
/// first cell, modulo 8.
template <class X, TileShape S, class Bits>
constexpr void scan_pairs(const Bits* tile, const LanePlace& place, std::uint32_t phase, LaneScan& scan) {
  static_assert(kPairPiece == kLanes && kPairPieceEvery == kGroupRows);
  typename X::template vec<std::uint32_t> exists;
  existing_runs<X, S>(place, exists);
  const std::uint32_t first = (0 - phase) % kGroupRows;
  rolled(0, kGroups, [&](unsigned g) {
    typename X::template vec<Bits> cells, next;
    typename X::template vec<bool> same;
    const std::uint32_t here = load_run<X, S>(tile, place, exists, kGroupRows * g + first, cells);
    X::shift_down(next, cells);
    X::lanes([&](auto lane) { X::set(same, lane, X::get(cells, lane) == X::get(next, lane)); });
    scan.equal_pairs += static_cast<std::uint32_t>(popcount(X::ballot(same) & here & here >> 1));
  });
}

/// Minus zeros, and whether a cell must be masked; W is the element type.
template <class X, TileShape S, class W>
constexpr void scan_values(const typename W::Word* tile, const LanePlace& place, const LaneFills& fills,
                           LaneScan& scan) {
  using Word = typename W::Word;
  typename X::template vec<std::uint32_t> exists;
  existing_runs<X, S>(place, exists);
  rolled(0, kRows, [&](unsigned i) {
    typename X::template vec<Word> cells;
    typename X::template vec<bool> mandatory, minus_zero;
    const std::uint32_t here = load_run<X, S>(tile, place, exists, i, cells);
    X::lanes([&](auto lane) {
      const Word cell = X::get(cells, lane);
      bool must = W::kFloat && (cell & W::kMagnitude) >= W::kInfinity;
      for (std::uint32_t f = 0; f < fills.count; ++f) {
        const FillWords<W> fill(fills.bits[f]);
        must = must || (fill.count > 0 && cell == fill.words[0]) || (fill.count > 1 && cell == fill.words[1]);
      }
      X::set(mandatory, lane, must);
      X::set(minus_zero, lane, W::kFloat && cell == W::kSign);
    });
    scan.any_mandatory = scan.any_mandatory || (X::ballot(mandatory) & here) != 0;
    scan.negative_zeros += static_cast<std::uint32_t>(popcount(X::ballot(minus_zero) & here));
  });
}

/// The same for an element type that is known at run time and as wide as Bits.
template <class X, TileShape S, class Bits>
constexpr void scan_values(Element element, const Bits* tile, const LanePlace& place, const LaneFills& fills,
                           LaneScan& scan) {
  with_element_words(element, [&](auto words) {
    using W = decltype(words);
    if constexpr (std::is_same_v<typename W::Word, Bits>) scan_values<X, S, W>(tile, place, fills, scan);
  });
}

}  // namespace quern::kernels
