// One tile as a warp codes it, over an execution model X with collective operations (see kernels/README.md): the twin
// of kernels/lorenzo/cpu, byte for byte. What is the same in all lanes is a plain value, what differs is an X::vec.
//
// The rows of a tile lie in memory that its lanes share, where an index may be anything; only groups of 8 rows pass
// through registers, by indices that are constants. Words of 64 bits lie there as two halves of 32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/bits.h"
#include "kernels/common/unroll.h"
#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/tile.h"

namespace quern::kernels {

inline constexpr unsigned kGroupRows = kRows / kGroups;

/// Word that an element's codes are computed in.
template <class Bits>
using CodeWord = std::conditional_t<(sizeof(Bits) > 4), std::uint64_t, std::uint32_t>;

/// A tile's rows: codes, then residuals, in the encoder at last planes and their bytes. Row `row` of lane `lane` is at
/// lane_cell(row, lane) of each half; the odd pitch keeps both a row and a column free of bank conflicts.
inline constexpr unsigned kCellPitch = kLanes + 1;
inline constexpr unsigned kHalfCells = kRows * kCellPitch;
[[gnu::always_inline]] constexpr unsigned lane_cell(unsigned row, unsigned lane) { return row * kCellPitch + lane; }

template <class Word>
struct LaneArea {
  static constexpr unsigned kHalves = sizeof(Word) / 4;
  std::uint32_t cells[kHalves * kHalfCells];
};

/// Loads and stores one cell of arithmetic word A.
template <class X, class A>
[[gnu::always_inline]] constexpr A load_cell(const std::uint32_t* cells, unsigned cell, std::size_t lane) {
  if constexpr (sizeof(A) == 8) {
    return X::load(cells + cell, lane) | static_cast<A>(X::load(cells + kHalfCells + cell, lane)) << 32;
  } else {
    return X::load(cells + cell, lane);
  }
}
template <class X, class A>
[[gnu::always_inline]] constexpr void store_cell(std::uint32_t* cells, unsigned cell, std::size_t lane, A value) {
  X::store(cells + cell, lane, static_cast<std::uint32_t>(value));
  if constexpr (sizeof(A) == 8) X::store(cells + kHalfCells + cell, lane, static_cast<std::uint32_t>(value >> 32));
}
/// A cell that all lanes read together.
template <class X, class A>
[[gnu::always_inline]] constexpr A load_same_cell(const std::uint32_t* cells, unsigned cell) {
  if constexpr (sizeof(A) == 8) {
    return X::load_same(cells + cell) | static_cast<A>(X::load_same(cells + kHalfCells + cell)) << 32;
  } else {
    return X::load_same(cells + cell);
  }
}

/// Loads 32 rows of one half of the cells.
template <class X, class V>
constexpr void load_rows(const std::uint32_t* cells, V (&rows)[kRows]) {
  X::lanes([&](auto lane) {
    unroll<kRows>([&](auto row) {
      X::set(rows[row], lane,
             X::load(cells + lane_cell(static_cast<unsigned>(row), static_cast<unsigned>(lane)), lane));
    });
  });
}

/// Bits that occur in 8 rows each: bit p of bits[k] says that byte k of the lane's word of plane p is not 0.
template <class X, class V>
constexpr void find_group_bits(const V (&rows)[kRows], V (&bits)[kGroups]) {
  X::lanes([&](auto lane) {
    unroll<kGroups>([&](auto g) {
      std::uint32_t any = 0;
      unroll<kGroupRows>([&](auto j) { any |= X::get(rows[kGroupRows * g + j], lane); });
      X::set(bits[g], lane, any);
    });
  });
}

/// What exists of a tile, and where it lies in the chunk.
struct LanePlace {
  std::uint64_t offset = 0;  ///< of the tile's first element
  std::uint64_t stride_z = 0;
  std::uint64_t stride_y = 0;
  std::uint32_t extents[3] = {0, 0, 0};
  bool full = false;

  [[gnu::always_inline]] constexpr std::uint32_t elems() const { return extents[0] * extents[1] * extents[2]; }
};

template <TileShape S>
[[gnu::always_inline]] constexpr LanePlace lane_place(const ChunkBox& box, std::uint32_t tile) {
  constexpr auto kSize = tile_extents(S);
  const auto counts = tile_counts(box, S);
  // A chunk has a few tiles: 32-bit divisions will do.
  const auto along_y = static_cast<std::uint32_t>(counts[1]);
  const auto along_x = static_cast<std::uint32_t>(counts[2]);
  const std::uint64_t index[3] = {tile / (along_y * along_x), tile / along_x % along_y, tile % along_x};
  LanePlace place;
  place.stride_z = box.strides[0];
  place.stride_y = box.strides[1];
  place.offset = index[0] * kSize[0] * box.strides[0] + index[1] * kSize[1] * box.strides[1] + index[2] * kSize[2];
  place.full = true;
  for (std::size_t a = 0; a < 3; ++a) {
    const std::uint64_t left = box.extents[a] - index[a] * kSize[a];
    place.extents[a] = left < kSize[a] ? static_cast<std::uint32_t>(left) : kSize[a];
    place.full = place.full && place.extents[a] == kSize[a];
  }
  return place;
}

/// Run i is 32 neighbours in the array: where it begins, counted from the tile's first element, and the cell of one of
/// its elements. Within a group of 8 runs the step from one to the next is always the same.
template <TileShape S>
[[gnu::always_inline]] constexpr std::uint64_t run_step(const LanePlace& place) {
  return S == TileShape::line ? kLanes : place.stride_y;
}
template <TileShape S>
[[gnu::always_inline]] constexpr std::uint64_t group_offset(const LanePlace& place, unsigned group) {
  if constexpr (S == TileShape::block) return group * place.stride_z;
  return kGroupRows * group * run_step<S>(place);
}
template <TileShape S>
[[gnu::always_inline]] constexpr std::uint64_t run_offset(const LanePlace& place, std::size_t i) {
  const auto run = static_cast<unsigned>(i);
  return group_offset<S>(place, run / kGroupRows) + run % kGroupRows * run_step<S>(place);
}
template <TileShape S>
[[gnu::always_inline]] constexpr unsigned run_cell(std::size_t i, std::size_t element) {
  const auto run = static_cast<unsigned>(i);
  const auto at = static_cast<unsigned>(element);
  return S == TileShape::line ? lane_cell(at, run) : lane_cell(run, at);
}
/// Offset of the element at (row, lane).
template <TileShape S>
[[gnu::always_inline]] constexpr std::uint64_t cell_offset(const LanePlace& place, std::size_t row, std::size_t lane) {
  return S == TileShape::line ? run_offset<S>(place, lane) + row : run_offset<S>(place, row) + lane;
}

/// Bit i of lane l: whether (run i, element l) exists.
template <class X, TileShape S>
constexpr void existing_runs(const LanePlace& place, typename X::template vec<std::uint32_t>& mask) {
  X::lanes([&](auto lane) {
    const auto l = static_cast<std::uint32_t>(lane);
    std::uint32_t runs = 0xffffffffu;
    if constexpr (S == TileShape::line) {
      const std::uint32_t n = place.extents[2] > l ? (place.extents[2] - l + kLanes - 1) / kLanes : 0;
      if (n < kRows) runs = (1u << n) - 1;
    } else if (!place.full) {
      const std::uint32_t ys = place.extents[1] < kRows ? (1u << place.extents[1]) - 1 : 0xffffffffu;
      runs = 0;
      for (std::uint32_t z = 0; z < place.extents[0]; ++z) runs |= ys << (z * rows_per_plane(S));
      if (l >= place.extents[2]) runs = 0;
    }
    X::set(mask, lane, runs);
  });
}

/// Bit r of lane l: whether (row r, lane l) exists.
template <class X, TileShape S>
constexpr void existing_rows(const LanePlace& place, typename X::template vec<std::uint32_t>& column) {
  if constexpr (S == TileShape::line) {
    X::lanes([&](auto lane) {
      const std::uint32_t first = kRows * static_cast<std::uint32_t>(lane);
      const std::uint32_t n = place.extents[2] > first ? place.extents[2] - first : 0;
      X::set(column, lane, n < kRows ? (1u << n) - 1 : 0xffffffffu);
    });
  } else {
    existing_runs<X, S>(place, column);
  }
}

/// Bit r of lane l and bit l of lane r change places.
template <class X>
constexpr void transpose_lane_bits(typename X::template vec<std::uint32_t>& a) {
  typename X::template vec<std::uint32_t> out;
  X::lanes([&](auto lane) { X::set(out, lane, 0u); });
  rolled(0, kRows, [&](unsigned r) {
    typename X::template vec<bool> bit;
    X::lanes([&](auto lane) { X::set(bit, lane, (X::get(a, lane) >> r & 1) != 0); });
    const std::uint32_t mask = X::ballot(bit);
    X::lanes([&](auto lane) {
      if (lane == r) X::set(out, lane, mask);
    });
  });
  a = out;
}

/// Bits set in all lanes together.
template <class X>
constexpr std::uint32_t count_lane_bits(const typename X::template vec<std::uint32_t>& a) {
  typename X::template vec<std::uint32_t> count;
  X::lanes([&](auto lane) { X::set(count, lane, popcount(X::get(a, lane))); });
  return X::reduce_add(count);
}

/// Bits below bit `lane`.
[[gnu::always_inline]] constexpr std::uint32_t bits_below(std::size_t lane) {
  return (1u << static_cast<unsigned>(lane)) - 1;
}

}  // namespace quern::kernels
