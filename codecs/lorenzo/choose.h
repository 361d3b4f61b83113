// What the choice of a layout and its predictors rests on: which tiles of the sample are looked at, and how their costs
// decide. Integers alone, the same in host and device code; who reads the tiles and finds the costs is elsewhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include <quern/codec.h>

#include "kernels/lorenzo/chunk_task.h"
#include "kernels/lorenzo/tile.h"
#include "libcompress/core/scattered_sample.h"

namespace quern::codec::lorenzo {

inline constexpr std::uint64_t kSampleTiles = 64;

/// Estimated bytes of a tile under each predictor.
using TileCosts = std::array<std::uint32_t, kernels::kPredictors>;

/// At most kSampleTiles tiles of a grid: one from each of equal parts of the sample, each at another place in its part.
class SampleTiles {
 public:
  constexpr SampleTiles() = default;
  /// The sample is the grid's first `elems` elements, at least 1.
  constexpr SampleTiles(const ChunkGrid& grid, kernels::TileShape tile, std::uint64_t elems)
      : extents_(covered(grid.extents, elems)),
        size_(kernels::tile_extents(tile)),
        strides_{grid.extents[1] * grid.extents[2], grid.extents[2]} {
    for (std::size_t a = 0; a < 3; ++a) counts_[a] = (extents_[a] + size_[a] - 1) / size_[a];
  }

  constexpr std::uint64_t size() const { return tiles() < kSampleTiles ? tiles() : kSampleTiles; }

  struct Tile {
    kernels::ChunkBox box;
    std::uint64_t first = 0;  ///< of the sample's elements
    constexpr std::uint64_t elems() const { return box.extents[0] * box.extents[1] * box.extents[2]; }
  };
  constexpr Tile operator[](std::uint64_t i) const {
    const std::uint64_t index = scattered_sample(tiles(), size(), i);
    const std::array<std::uint64_t, 3> at{index / (counts_[1] * counts_[2]) * size_[0],
                                          index / counts_[2] % counts_[1] * size_[1], index % counts_[2] * size_[2]};
    Tile tile;
    for (std::size_t a = 0; a < 3; ++a) tile.box.extents[a] = std::min<std::uint64_t>(size_[a], extents_[a] - at[a]);
    tile.box.strides = strides_;
    tile.first = at[0] * strides_[0] + at[1] * strides_[1] + at[2];
    return tile;
  }
  /// Elements of all tiles.
  constexpr std::uint64_t elems() const {
    std::uint64_t n = 0;
    for (std::uint64_t i = 0; i < size(); ++i) n += (*this)[i].elems();
    return n;
  }

 private:
  constexpr std::uint64_t tiles() const { return counts_[0] * counts_[1] * counts_[2]; }
  /// The leading part of a grid that a sample of `elems` elements covers wholly, as extents.
  static constexpr std::array<std::uint64_t, 3> covered(const std::array<std::uint64_t, 3>& extents,
                                                        std::uint64_t elems) {
    const std::uint64_t plane = extents[1] * extents[2];
    if (elems >= plane) return {std::min(extents[0], elems / plane), extents[1], extents[2]};
    if (elems >= extents[2]) return {1, elems / extents[2], extents[2]};
    return {1, 1, elems};
  }

  std::array<std::uint64_t, 3> extents_{};
  std::array<unsigned, 3> size_{};
  std::array<std::uint64_t, 2> strides_{};
  std::array<std::uint64_t, 3> counts_{};
};

/// Greedy set of candidates: predictors are added while they save 1/128 of all tiles' costs, the one that saves most
/// first, ties to the lower number. `costs` are those of the sample's tiles.
constexpr void choose_candidates(std::span<const TileCosts> costs, kernels::ChunkRules& rules) {
  std::array<std::uint32_t, kSampleTiles> best{};
  for (std::size_t t = 0; t < costs.size(); ++t) best[t] = UINT32_MAX;
  std::uint64_t best_sum = UINT64_MAX;
  rules.candidate_count = 0;
  while (rules.candidate_count < kernels::kMaxCandidates) {
    std::uint64_t sum = UINT64_MAX;
    unsigned chosen = 0;
    for (unsigned p = 0; p < kernels::kPredictors; ++p) {
      if (!kernels::predictor_fits(static_cast<kernels::Predictor>(p), rules.tile)) continue;
      std::uint64_t with = 0;
      for (std::size_t t = 0; t < costs.size(); ++t) with += std::min(best[t], costs[t][p]);
      if (with < sum) {
        sum = with;
        chosen = p;
      }
    }
    if (rules.candidate_count > 0 && sum + sum / 128 >= best_sum) break;
    rules.candidates[rules.candidate_count++] = static_cast<kernels::Predictor>(chosen);
    for (std::size_t t = 0; t < costs.size(); ++t) best[t] = std::min(best[t], costs[t][chosen]);
    best_sum = sum;
  }
}

/// Bytes of a layout's sample tiles under its candidates, and their elements.
struct LayoutCost {
  std::uint64_t bytes = 0;
  std::uint64_t elems = 0;
};
/// Whether a layout costs less an element than another; both products stay far below 2^64.
constexpr bool is_cheaper(const LayoutCost& a, const LayoutCost& b) { return a.bytes * b.elems < b.bytes * a.elems; }

}  // namespace quern::codec::lorenzo
