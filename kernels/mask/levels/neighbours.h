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

/// What a cell is coded by.
struct LevelChoice {
  std::uint16_t context = 0;  ///< of a quiet cell: its class
  std::uint16_t fine = kNoFine;
  std::uint8_t expected = 0;  ///< the symbol says whether the cell is something else
  bool quiet = false;
};

/// Of a cell in a plane without a reference: v are its neighbours.
constexpr LevelChoice flat_level_choice(unsigned phase, unsigned distance, const std::uint8_t (&v)[kLevelNeighbours]) {
  unsigned f = 0;
  for (unsigned i = 1; i < kLevelNeighbours; ++i) f += v[i] == v[0] ? 0U : 1U << (i - 1);
  LevelChoice choice;
  choice.expected = v[0];
  choice.quiet = f == 0;
  if (f != 0)
    choice.context =
        static_cast<std::uint16_t>(level_contexts::kFlat + (distance * level_contexts::kPhases + phase) * 128 + f);
  return choice;
}

/// What the reference plane says of a cell.
struct LevelReference {
  std::uint8_t value = 0;
  std::uint8_t equal = 0;   ///< of the eight cells around it, how many are like it
  std::uint8_t differ = 0;  ///< neighbours that are not as in the reference: of all in the last phase, else of six
};

constexpr LevelChoice reference_level_choice(unsigned phase, unsigned distance,
                                             const std::uint8_t (&v)[kLevelNeighbours], const LevelReference& ref) {
  const bool last = phase + 1 == level_contexts::kPhases;
  const std::uint8_t r = ref.value;
  LevelChoice choice;
  choice.expected = r;
  if (ref.equal == 8 && ref.differ == 0) {
    bool agree = true;
    for (unsigned i = 1; i < kLevelNeighbours; ++i) agree = agree && v[i] == v[0];
    choice.quiet = true;
    choice.context = static_cast<std::uint16_t>((agree ? 1 : 3) + r);
    return choice;
  }
  const auto alike = [&](unsigned first, unsigned count) {
    unsigned n = 0;
    for (unsigned i = first; i < first + count; ++i) n += v[i] == r ? 1 : 0;
    return n;
  };
  const unsigned near = last ? alike(0, 4) : 2 * alike(0, 2);
  const unsigned next = last ? alike(4, 4) : alike(2, 4);
  const unsigned g = next == 4 ? 2 : next >= 2 ? 1 : 0;
  const unsigned d = ref.differ <= 1 ? ref.differ : ref.differ <= 3 ? 2 : 3;
  const unsigned e7 = ref.equal <= 2 ? 0 : ref.equal - 2U;
  const unsigned e4 = ref.equal <= 4 ? 0 : ref.equal <= 6 ? 1 : ref.equal - 5U;
  const unsigned far = distance == 0 ? 0 : 1;
  choice.context =
      static_cast<std::uint16_t>(level_contexts::kCoarse + ((((last ? 4U : 0U) + e4) * 4 + d) * 5 + near) * 2 + r);
  choice.fine = static_cast<std::uint16_t>(
      (((((far * level_contexts::kPhases + phase) * 7 + e7) * 4 + d) * 5 + near) * 3 + g) * 2 + r);
  return choice;
}

}  // namespace quern::kernels
