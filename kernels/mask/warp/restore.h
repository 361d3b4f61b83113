// How special values come back to the cells of a segment whose classes are known, by the lanes of a warp. Over an
// execution model X (see kernels/README.md).
#pragma once

#include <cstdint>

#include "kernels/mask/warp/memory.h"

namespace quern::kernels {

struct SpecialCells {
  std::uint32_t masked = 0;
  std::uint32_t verbatim = 0;
};

/// `class_of(cell, lane)`: the class of a cell.
template <class X, class ClassOf>
constexpr SpecialCells count_special_cells(std::uint32_t cells, ClassOf&& class_of) {
  typename X::template vec<std::uint32_t> masked, verbatim;
  X::lanes([&](auto lane) {
    std::uint32_t special = 0, one_by_one = 0;
    for (auto c = static_cast<std::uint32_t>(lane); c < cells; c += kLanes) {
      const std::uint8_t k = class_of(c, lane);
      special += k != 0 ? 1 : 0;
      one_by_one += k == kVerbatimClass ? 1 : 0;
    }
    X::set(masked, lane, special);
    X::set(verbatim, lane, one_by_one);
  });
  return {X::reduce_add(masked), X::reduce_add(verbatim)};
}

/// `specials`: the value of each class from 1 on. Calls put(offset, bits) for cells by their offset in the array.
template <class X, class Word, class ClassOf, class Put>
constexpr void write_special_values(const LaneSegment<Word>& segment, const std::uint64_t* specials, ClassOf&& class_of,
                                    Put&& put) {
  for_pieces(segment, 0, segment.rows(), [&](const LanePiece(&pieces)[kPiecesAhead]) {
    X::lanes([&](auto lane) {
      std::uint8_t found[kPiecesAhead];
      unroll<kPiecesAhead>([&](auto j) {
        const bool exists = lane < pieces[j].cells;
        found[j] = exists ? class_of(pieces[j].first + static_cast<std::uint32_t>(lane), lane) : std::uint8_t{0};
      });
      unroll<kPiecesAhead>([&](auto j) {
        if (found[j] == 0 || found[j] == kVerbatimClass) return;
        put(pieces[j].offset + lane, X::load(specials + found[j] - 1, lane));
      });
    });
  });
}

}  // namespace quern::kernels
