// A whole tile of 4-byte elements as its values, in memory that the lanes share, for a warp, over an execution model X:
// 32 runs of 128 bytes. In a line tile a lane reads its own run, 16 bytes at a time; there the blocks of 16 bytes of a
// run change places, so that lanes that read the same block of their runs meet no bank twice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lorenzo/warp/decode_area.h"
#include "kernels/lorenzo/warp/segment_scan.h"
#include "kernels/lorenzo/warp/tile.h"

namespace quern::kernels {

inline constexpr unsigned kStageWords = kTileElems;

/// Where element `at` of run `run` is.
template <TileShape S>
[[gnu::always_inline]] constexpr unsigned stage_cell(unsigned run, unsigned at) {
  return kLanes * run + (S == TileShape::line ? at ^ (4 * (run & 7)) : at);
}

/// The 32 values of a lane's column, row r to rows[r].
template <class X, TileShape S, class V>
constexpr void load_column(const std::uint32_t* stage, V (&rows)[kRows]) {
  X::lanes([&](auto lane) {
    const auto l = static_cast<unsigned>(lane);
    if constexpr (S == TileShape::line) {
      unroll<kRows / 4>([&](auto c) {
        const auto quad =
            X::load(reinterpret_cast<const LaneQuad*>(stage + stage_cell<S>(l, 4 * static_cast<unsigned>(c))), lane);
        unroll<4>([&](auto k) { X::set(rows[4 * c + k], lane, quad.at[k]); });
      });
    } else {
      unroll<kRows>(
          [&](auto r) { X::set(rows[r], lane, X::load(stage + stage_cell<S>(static_cast<unsigned>(r), l), lane)); });
    }
  });
}

/// Equal pairs of neighbours in the pieces that are read: one run in eight. `phase` as in scan_pairs. Elements of other
/// widths are staged in order, as those of a plane.
template <class X, TileShape S, class Word>
constexpr std::uint32_t count_staged_pairs(const Word* stage, std::uint32_t phase) {
  const std::uint32_t first = (0 - phase) % kGroupRows;
  typename X::template vec<std::uint32_t> same;
  X::lanes([&](auto lane) {
    const auto l = static_cast<unsigned>(lane);
    std::uint32_t count = 0;
    unroll<kGroups>([&](auto g) {
      const unsigned run = kGroupRows * static_cast<unsigned>(g) + first;
      const Word own = X::load(stage + stage_cell<S>(run, l), lane);
      // The last lane has no neighbour: it compares another word of its run that it does not count.
      const Word next = X::load(stage + stage_cell<S>(run, (l + 1) % kLanes), lane);
      count += own == next ? 1 : 0;
    });
    X::set(same, lane, l + 1 < kLanes ? count : 0u);
  });
  return X::reduce_add(same);
}

/// Whether some value is one of the declared fill values; W is the element type.
template <class X, class W>
constexpr bool has_staged_fill(const typename W::Word* stage, const LaneFills& fills) {
  typename X::template vec<bool> found;
  X::lanes([&](auto lane) { X::set(found, lane, false); });
  rolled(0, fills.count, [&](unsigned f) {
    const FillWords<W> fill(fills.bits[f]);
    X::lanes([&](auto lane) {
      bool any = X::get(found, lane);
      in_eights(0, kRows, [&](unsigned r) {
        const auto word = X::load(stage + kLanes * r + static_cast<unsigned>(lane), lane);
        any = any || (fill.count > 0 && word == fill.words[0]) || (fill.count > 1 && word == fill.words[1]);
      });
      X::set(found, lane, any);
    });
  });
  return X::any(found);
}

/// Whether some value is no finite number, or a minus zero; W is a floating-point type.
template <class X, class W>
constexpr bool has_staged_special(const typename W::Word* stage) {
  typename X::template vec<bool> found;
  X::lanes([&](auto lane) {
    bool any = false;
    in_eights(0, kRows, [&](unsigned r) {
      const auto word = X::load(stage + kLanes * r + static_cast<unsigned>(lane), lane);
      any = any || (word & W::kMagnitude) >= W::kInfinity || word == W::kSign;
    });
    X::set(found, lane, any);
  });
  return X::any(found);
}

}  // namespace quern::kernels
