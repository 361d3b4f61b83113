// Masks that are coded by levels, 64 cells at a time. The cells of a phase, and those known before it, are lattices:
// rows of bits without gaps. A neighbour of all cells of a row is then a row of another lattice, moved by a few bits.
// Host and device code use it alike.
#pragma once

#include <cstdint>

#include "kernels/mask/levels/models.h"
#include "kernels/mask/levels/neighbours.h"

namespace quern::kernels {

/// Bits 0, 2, 4, ... of a word, side by side in its lower half.
[[gnu::always_inline]] constexpr std::uint64_t even_bits(std::uint64_t x) {
  x &= UINT64_C(0x5555555555555555);
  x = (x | x >> 1) & UINT64_C(0x3333333333333333);
  x = (x | x >> 2) & UINT64_C(0x0F0F0F0F0F0F0F0F);
  x = (x | x >> 4) & UINT64_C(0x00FF00FF00FF00FF);
  x = (x | x >> 8) & UINT64_C(0x0000FFFF0000FFFF);
  return (x | x >> 16) & UINT64_C(0x00000000FFFFFFFF);
}
/// The way back: bits of the lower half at 0, 2, 4, ...
[[gnu::always_inline]] constexpr std::uint64_t spread_bits(std::uint64_t x) {
  x &= UINT64_C(0x00000000FFFFFFFF);
  x = (x | x << 16) & UINT64_C(0x0000FFFF0000FFFF);
  x = (x | x << 8) & UINT64_C(0x00FF00FF00FF00FF);
  x = (x | x << 4) & UINT64_C(0x0F0F0F0F0F0F0F0F);
  x = (x | x << 2) & UINT64_C(0x3333333333333333);
  return (x | x << 1) & UINT64_C(0x5555555555555555);
}

/// The lattices at a distance: cells known before, and those of phases A and B.
enum class LevelLattice : std::uint8_t { known, a, b };

/// Where a neighbour of cell (i, j) of a phase is: in which lattice, and how many rows and columns from (i, j) there.
/// Places outside are those of the nearest row and column of the lattice, which is what level_coordinate says of cells.
struct LevelTap {
  LevelLattice lattice;
  std::int8_t row;
  std::int8_t col;
};
inline constexpr LevelTap kLevelTaps[level_contexts::kPhases][kLevelNeighbours] = {
    {{LevelLattice::known, 0, 0},
     {LevelLattice::known, 0, 1},
     {LevelLattice::known, -1, 0},
     {LevelLattice::known, -1, 1},
     {LevelLattice::known, 1, 0},
     {LevelLattice::known, 1, 1},
     {LevelLattice::known, 0, -1},
     {LevelLattice::known, 0, 2}},
    {{LevelLattice::known, 0, 0},
     {LevelLattice::known, 1, 0},
     {LevelLattice::a, 0, -1},
     {LevelLattice::a, 0, 0},
     {LevelLattice::a, 1, -1},
     {LevelLattice::a, 1, 0},
     {LevelLattice::known, -1, 0},
     {LevelLattice::known, 2, 0}},
    {{LevelLattice::b, 0, 0},
     {LevelLattice::b, 0, 1},
     {LevelLattice::a, 0, 0},
     {LevelLattice::a, 1, 0},
     {LevelLattice::known, 0, 0},
     {LevelLattice::known, 0, 1},
     {LevelLattice::known, 1, 0},
     {LevelLattice::known, 1, 1}},
};

/// Word k of a row whose bits are moved by -1 to 2 columns. The row goes on behind its last column, by a word at least,
/// with the bit of that column.
[[gnu::always_inline]] constexpr std::uint64_t moved_word(const std::uint64_t* row, std::uint64_t k, int columns) {
  if (columns == 0) return row[k];
  if (columns < 0) return row[k] << 1 | (k == 0 ? row[0] & 1 : row[k - 1] >> 63);
  return row[k] >> columns | row[k + 1] << (64 - columns);
}

/// Numbers of 64 cells, each bit of them in a word of its own.
struct LevelNumbers {
  std::uint64_t bit[3];

  [[gnu::always_inline]] constexpr unsigned of(unsigned cell) const {
    return static_cast<unsigned>((bit[0] >> cell & 1) | (bit[1] >> cell & 1) << 1 | (bit[2] >> cell & 1) << 2);
  }
};

/// How many of three words have a bit: sum and carry.
[[gnu::always_inline]] constexpr LevelNumbers count_of_three(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return {{a ^ b ^ c, (a & b) | (c & (a ^ b)), 0}};
}
[[gnu::always_inline]] constexpr LevelNumbers count_of_four(std::uint64_t a, std::uint64_t b, std::uint64_t c,
                                                            std::uint64_t d) {
  const std::uint64_t ab = a ^ b, cd = c ^ d, both = ab & cd;
  return {{ab ^ cd, (a & b) ^ (c & d) ^ both, a & b & c & d}};
}

/// Cells of a reference, and how many of the eight around each are like it: 0 for up to 2, else less 2.
[[gnu::always_inline]] constexpr LevelNumbers equal_around(std::uint64_t here, const std::uint64_t (&around)[8]) {
  const auto alike = [&](unsigned i) { return ~(around[i] ^ here); };
  const LevelNumbers a = count_of_three(alike(0), alike(1), alike(2)), b = count_of_three(alike(3), alike(4), alike(5));
  const LevelNumbers c = count_of_three(a.bit[0], b.bit[0], alike(6));
  const std::uint64_t ones = c.bit[0] ^ alike(7), carry = c.bit[0] & alike(7);
  const LevelNumbers pairs = count_of_four(a.bit[1], b.bit[1], c.bit[1], carry);  // of the number, the half
  const std::uint64_t half = pairs.bit[0] | pairs.bit[1] | pairs.bit[2];
  return {{ones & half, ~pairs.bit[0] & half, (pairs.bit[0] & pairs.bit[1]) | pairs.bit[2]}};
}

/// 64 cells beside a reference, as LevelSides has them, of those that the phase is.
struct LevelSideWords {
  LevelNumbers near;
  LevelNumbers next;
  LevelNumbers differ;
};
/// `v`: the neighbours; `there`: the same of the reference; `r`: the reference at the cells.
template <unsigned kPhase>
[[gnu::always_inline]] constexpr LevelSideWords level_sides(const std::uint64_t (&v)[kLevelNeighbours],
                                                            const std::uint64_t (&there)[kLevelNeighbours],
                                                            std::uint64_t r) {
  constexpr bool kLast = kPhase + 1 == level_contexts::kPhases;
  const auto alike = [&](unsigned i) { return ~(v[i] ^ r); };
  const auto other = [&](unsigned i) { return v[i] ^ there[i]; };
  LevelSideWords words{};
  if constexpr (kLast) {
    words.near = count_of_four(alike(0), alike(1), alike(2), alike(3));
  } else {
    words.near = {{0, alike(0) ^ alike(1), alike(0) & alike(1)}};
  }
  constexpr unsigned kNext = kLast ? 4 : 2;
  const LevelNumbers next = count_of_four(alike(kNext), alike(kNext + 1), alike(kNext + 2), alike(kNext + 3));
  words.next = {{next.bit[1], next.bit[2], 0}};
  const LevelNumbers a = count_of_three(other(0), other(1), other(2)), b = count_of_three(other(3), other(4), other(5));
  LevelNumbers sum{{a.bit[0] ^ b.bit[0], a.bit[0] & b.bit[0], 0}};
  std::uint64_t more = 0;
  if constexpr (kLast) {
    sum = count_of_three(a.bit[0], b.bit[0], other(6) ^ other(7));
    more = other(6) & other(7);
  }
  const LevelNumbers pairs = count_of_four(a.bit[1], b.bit[1], sum.bit[1], more);
  const std::uint64_t many = pairs.bit[1] | pairs.bit[2];
  words.differ = {{many | (sum.bit[0] & ~pairs.bit[0]), many | pairs.bit[0], 0}};
  return words;
}

}  // namespace quern::kernels
