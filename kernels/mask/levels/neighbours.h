// Order and surroundings of cells in masks that are coded by levels. Cells on a coarse lattice come first; each level
// halves the distance s between known cells in three phases, whose cells depend on cells of earlier phases alone. Host
// and device code use it alike.
#pragma once

#include <cstdint>

#include "kernels/mask/levels/models.h"

namespace quern::kernels {

inline constexpr unsigned kLevelNeighbours = 8;

/// A phase at distance s: cells (y, x) with y = y0 * s and x = x0 * s, modulo 2s.
struct LevelPhase {
  std::uint64_t y0;
  std::uint64_t x0;
  std::int8_t dy[kLevelNeighbours];  ///< of the neighbours, in units of s
  std::int8_t dx[kLevelNeighbours];
};
inline constexpr LevelPhase kLevelPhases[level_contexts::kPhases] = {
    {0, 1, {0, 0, -2, -2, 2, 2, 0, 0}, {-1, 1, -1, 1, -1, 1, -3, 3}},
    {1, 0, {-1, 1, -1, -1, 1, 1, -3, 3}, {0, 0, -1, 1, -1, 1, 0, 0}},
    {1, 1, {0, 0, -1, 1, -1, -1, 1, 1}, {-1, 1, 0, 0, -1, 1, -1, 1}},
};

/// Distance of the first lattice: the least power of two that leaves at most 16 cells; at most 8 with a reference.
constexpr std::uint64_t level_base(std::uint64_t rows, std::uint64_t cols, bool with_reference) {
  constexpr std::uint64_t kMostCells = 16, kMostWithReference = 8;
  const auto places = [](std::uint64_t n, std::uint64_t t) { return (n + t - 1) / t; };
  std::uint64_t t = 1;
  // Either factor alone is compared first: their product may not fit.
  while (places(rows, t) > kMostCells || places(cols, t) > kMostCells || places(rows, t) * places(cols, t) > kMostCells)
    t *= 2;
  return with_reference && t > kMostWithReference ? kMostWithReference : t;
}

/// Class of a distance: 0, 1, 2 for 1, 2, more.
constexpr unsigned level_distance(std::uint64_t s) { return s == 1 ? 0 : s == 2 ? 1 : 2; }

/// A coordinate of a neighbour, moved into [0, extent) by steps of 2s where it is outside; at most two each way.
/// Negative or beyond where there is no such cell.
constexpr std::int64_t level_coordinate(std::int64_t at, std::int64_t extent, std::int64_t s) {
  for (int i = 0; i < 2 && at < 0; ++i) at += 2 * s;
  for (int i = 0; i < 2 && at >= extent; ++i) at -= 2 * s;
  return at;
}

/// Context of a loud cell without a reference; bit i - 1 of `other`: neighbour i is not like neighbour 0.
constexpr unsigned flat_level_context(unsigned phase, unsigned distance, unsigned other) {
  return level_contexts::kFlat + (distance * level_contexts::kPhases + phase) * 128 + other;
}

/// What a loud cell is coded by beside a reference.
struct LevelSides {
  unsigned value;   ///< the reference's
  unsigned equal;   ///< of its eight neighbours there, how many are like it: 0 for up to 2, else less 2
  unsigned differ;  ///< neighbours that are not as in the reference: 0, 1, 2 for 2 and 3, 3 for more
  unsigned near;    ///< how many of the nearest four are like it; twice that of two in the first phases
  unsigned next;    ///< and of the next four: 0 for up to 1, 1 for 2 and 3, 2 for 4
};
constexpr unsigned coarse_level_context(unsigned phase, const LevelSides& sides) {
  const unsigned e4 = sides.equal <= 2 ? 0 : sides.equal <= 4 ? 1 : sides.equal - 3;
  const unsigned last = phase + 1 == level_contexts::kPhases ? 4 : 0;
  return level_contexts::kCoarse + (((last + e4) * 4 + sides.differ) * 5 + sides.near) * 2 + sides.value;
}
constexpr unsigned fine_level_context(unsigned phase, unsigned distance, const LevelSides& sides) {
  const unsigned far = distance == 0 ? 0 : 1;
  return (((((far * level_contexts::kPhases + phase) * 7 + sides.equal) * 4 + sides.differ) * 5 + sides.near) * 3 +
          sides.next) *
             2 +
         sides.value;
}

}  // namespace quern::kernels
