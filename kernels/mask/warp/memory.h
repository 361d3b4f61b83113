// What one warp has at hand for the mask of a segment: the segment's place in the array, memory that its lanes share,
// and the pieces of 32 cells that it goes through the cells in. Over an execution model X (see kernels/README.md).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/common/unroll.h"
#include "kernels/mask/patterns.h"
#include "kernels/mask/symbols.h"
#include "kernels/mask/view.h"

namespace quern::kernels {

/// A segment of an array: fewer than 2^31 cells, so that counts and indices of cells have 32 bits.
template <class Word>
struct LaneSegment {
  Word* cells = nullptr;  ///< the first one in the array
  std::uint32_t extents[3] = {1, 1, 1};
  std::uint64_t strides[2] = {0, 0};

  constexpr std::uint32_t rows() const { return extents[0] * extents[1]; }
  constexpr std::uint32_t cols() const { return extents[2]; }
  constexpr std::uint32_t elems() const { return rows() * cols(); }
  constexpr Word* row(std::uint32_t r) const {
    return cells + r / extents[1] * strides[0] + r % extents[1] * strides[1];
  }
  /// Planes of the box.
  constexpr MaskPlanes planes() const { return {elems(), extents[1], extents[2]}; }
};
inline constexpr std::uint64_t kMaxLaneCells = 0x7fffffffu;

/// Decisions that one item, a block or a cell, is coded by at most: 1 + 1 + 2 + 5, or 1 + 6 + 5.
inline constexpr unsigned kMostDecisions = 12;

/// Fast memory that the lanes share.
struct LaneMaskShared {
  MaskModels models;
  std::uint64_t specials[kMaxSpecials];
  std::uint64_t values[kLanes];  ///< verbatim values on their way to the coder or from it
  CountedPattern patterns[kMaxPatterns];
  std::uint32_t counts[kMaxReferenceDistance];  ///< planes that are equal at a distance; decisions of each lane
  std::uint16_t decisions[kLanes * kMostDecisions];
};

/// Other memory that they share.
struct LaneMaskMemory {
  std::uint8_t* classes = nullptr;   ///< one a cell, C order of the segment
  std::uint8_t* states = nullptr;    ///< of the blocks of the plane under way
  std::uint8_t* there = nullptr;     ///< states of the same blocks in the reference plane
  std::uint8_t* copied = nullptr;    ///< 1: equal to the reference plane
  std::uint32_t* open = nullptr;     ///< mixed blocks of the block row under way
  std::uint64_t* hashes = nullptr;   ///< of planes; encoder alone, before blocks are found
  std::uint64_t* bits = nullptr;     ///< of the cells, 64 a word; as long as the hashes
  std::uint16_t* symbols = nullptr;  ///< of a mask by levels, in place of the hashes
};

/// Symbols of the planes of a mask by levels, or of one bit of its classes, at most. A cell that is coded by class may
/// take three, but few are alone in theirs: planes of 17 cells, the smallest that have classes, take less than 42.
constexpr std::uint64_t most_level_symbols(std::uint64_t cells) { return 2 * cells + cells / 2 + 128; }

/// Bytes of that memory for segments of up to those extents in any view, and its parts: each begins at a multiple of 16
/// bytes. What is needed before blocks are found shares its place with the blocks. `by_levels`: of an encoder's masks.
class LaneMaskLayout {
 public:
  constexpr explicit LaneMaskLayout(const SegmentExtents& e, bool by_levels = false)
      : cells_(e[0] * e[1] * e[2]),
        blocks_(std::max(BlockGrid(e[1], e[2]).along_y(e[1]) * BlockGrid(e[1], e[2]).along_x(e[2]),
                         most_view_blocks(cells_))),
        open_(std::max(BlockGrid(e[1], e[2]).along_x(e[2]), most_view_columns(cells_))),
        planes_(by_levels ? std::max(most_level_planes(MaskPlanes(e)), (most_level_symbols(cells_) + 3) / 4)
                          : std::max(e[0], most_view_planes(cells_))) {}

  constexpr std::uint64_t bytes() const { return aligned(cells_) + std::max(block_bytes(), hash_bytes()); }
  constexpr LaneMaskMemory place(std::uint8_t* at) const {
    void* const shared = at;
    void* const bits = at + aligned(8 * planes_);
    LaneMaskMemory memory;
    memory.hashes = static_cast<std::uint64_t*>(shared);
    memory.symbols = static_cast<std::uint16_t*>(shared);
    memory.bits = static_cast<std::uint64_t*>(bits);
    memory.open = static_cast<std::uint32_t*>(shared);
    memory.states = at + aligned(4 * open_);
    memory.there = memory.states + aligned(blocks_);
    memory.copied = memory.there + aligned(blocks_);
    memory.classes = at + std::max(block_bytes(), hash_bytes());
    return memory;
  }

 private:
  static constexpr std::uint64_t aligned(std::uint64_t bytes) { return (bytes + 15) / 16 * 16; }
  constexpr std::uint64_t block_bytes() const { return aligned(4 * open_) + 3 * aligned(blocks_); }
  constexpr std::uint64_t hash_bytes() const { return aligned(8 * planes_) + aligned(8 * (cells_ / 64 + 2)); }
  std::uint64_t cells_;
  std::uint64_t blocks_;
  std::uint64_t open_;
  std::uint64_t planes_;  // hashes; each in the place of four symbols
};

/// Up to 32 neighbours of a row.
struct LanePiece {
  std::uint64_t offset = 0;  ///< of the first in the array, from the segment's first cell
  std::uint32_t first = 0;   ///< C order index of the first
  std::uint32_t y = 0;       ///< row in its plane
  std::uint32_t x = 0;
  std::uint32_t cells = 0;  ///< 0: no piece
};

/// Pieces that are loaded before the first of them is used: memory is far away.
inline constexpr unsigned kPiecesAhead = 4;

/// Calls f(pieces) for the rows [begin, end) of a segment, kPiecesAhead pieces at a time, in C order.
template <class Word, class F>
constexpr void for_pieces(const LaneSegment<Word>& segment, std::uint32_t begin, std::uint32_t end, F&& f) {
  const std::uint32_t cols = segment.cols();
  std::uint32_t row = begin, y = begin % segment.extents[1], x = 0;
  std::uint64_t offset = begin / segment.extents[1] * segment.strides[0] + y * segment.strides[1];
  while (row < end) {
    LanePiece pieces[kPiecesAhead];
    unroll<kPiecesAhead>([&](auto j) {
      if (row >= end) return;
      const std::uint32_t left = cols - x;
      pieces[j] = {offset + x, row * cols + x, y, x, left < kLanes ? left : kLanes};
      x += kLanes;
      if (x < cols) return;
      x = 0;
      ++row;
      offset += segment.strides[1];
      if (++y == segment.extents[1]) {
        y = 0;
        offset += segment.strides[0] - segment.extents[1] * segment.strides[1];
      }
    });
    f(pieces);
  }
}

/// The j-th of a few values in registers.
template <class T>
[[gnu::always_inline]] constexpr T picked(const T (&values)[kPiecesAhead], unsigned j) {
  T value = values[0];
  unroll<kPiecesAhead - 1>([&](auto k) {
    if (j == k + 1) value = values[k + 1];
  });
  return value;
}

/// Runs f in one lane; it reaches memory as lane 0.
template <class X, class F>
[[gnu::always_inline]] constexpr void in_one_lane(F&& f) {
  X::lanes([&](auto lane) {
    if (lane == 0) f();
  });
}
/// What f, run in one lane, returns (a number or an enumeration): the same in all lanes.
template <class X, class F>
[[gnu::always_inline]] constexpr auto from_one_lane(F&& f) {
  using T = decltype(f());
  if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(from_one_lane<X>([&] { return static_cast<std::underlying_type_t<T>>(f()); }));
  } else {
    typename X::template vec<T> result;
    X::lanes([&](auto lane) { X::set(result, lane, lane == 0 ? f() : T{}); });
    return X::broadcast(result, 0);
  }
}

/// Bits of the first `n` lanes, n up to 32.
[[gnu::always_inline]] constexpr std::uint32_t first_lanes(std::uint32_t n) {
  return n >= kLanes ? 0xffffffffu : (1u << n) - 1;
}

/// Ballot of what f(lane) says.
template <class X, class F>
[[gnu::always_inline]] constexpr std::uint32_t ballot_of(F&& f) {
  typename X::template vec<bool> flag;
  X::lanes([&](auto lane) { X::set(flag, lane, f(lane)); });
  return X::ballot(flag);
}

}  // namespace quern::kernels
