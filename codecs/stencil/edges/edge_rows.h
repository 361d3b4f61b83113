// Rows of the groups of a class that are not linear: each value is made from many points, where edges run through the
// field better than weights of points can say. Numbers are integers; docs/format-stencil.md, Edges, has the rules.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/taps.h"
#include "kernels/stencil/cpu/stencil.h"
#include "libcompress/core/arena.h"

namespace quern::codec::stencil {

/// Differences of a pair are compared over the distance of its points: factors that stand for its reciprocal, by the
/// square of the distance from the middle to a point. Pairs of linear groups are no farther apart.
constexpr std::uint32_t edge_factor(const Offset& offset) {
  int square = 0;
  for (const std::int8_t d : offset) square += d * d;
  return square == 1 ? 16 : square == 2 ? 11 : square == 3 ? 9 : 7;
}
/// Whether a group is a pair that the calmest one is looked for among.
constexpr bool is_edge_pair(const TapGroup& group) {
  constexpr int kReach = 2;
  return group.pair && std::all_of(group.offset.begin(), group.offset.end(),
                                   [](std::int8_t d) { return d >= -kReach && d <= kReach; });
}

/// Only where values are narrow: others have no such groups.
template <class Value>
class EdgeRows {
 public:
  static constexpr std::size_t kMost = 1 + kMaxAxes;  ///< groups of a class

  /// `columns`: of the longest row.
  EdgeRows(Arena& arena, std::size_t columns)
      : pitch_(columns + 2 * kernels::kStencilBlock), rows_(arena.take<Value>(kMost * pitch_)) {}

  /// Finds the sources of the rows of a run, of which `first` is the first one. With `weights`, groups whose weight is
  /// 0 are left out. The runs that the groups look at are complete.
  void open(const LevelGridOf<Value>& grid, std::size_t parity_class, const RowIndex& first, const GroupList& list,
            const GroupWeights* weights) {
    count_ = pairs_ = 0;
    if constexpr (kPossible) {
      for (std::size_t g = list.linear; g < list.count; ++g) {
        if (weights != nullptr && (*weights)[g] == 0) continue;
        Made& made = made_[count_++];
        made.group = g;
        made.source = list.groups[g].source;
        const auto row = [&](int steps) {
          Offset offset = list.groups[g].offset;
          for (std::int8_t& d : offset) d = static_cast<std::int8_t>(d * steps);
          return grid.run_value_row(parity_class, first, offset);
        };
        if (made.source == TapSource::curvature) {
          made.points = {row(-3), row(-1), row(1), row(3)};
        } else {
          find_pairs(grid, parity_class, first, list);
        }
      }
    }
  }
  std::size_t count() const { return count_; }
  /// Number in the list of the i-th group that has rows.
  std::size_t group(std::size_t i) const { return made_[i].group; }

  /// Makes the rows of all groups for the row of the run that lies `begin` elements behind the first.
  void make(std::size_t begin, std::size_t columns, const kernels::EdgeKernels& kernels) {
    if constexpr (kPossible) {
      for (std::size_t i = 0; i < count_; ++i) {
        if (made_[i].source == TapSource::curvature) {
          kernels.curvature(made_[i].points.data(), begin, columns, rows_ + i * pitch_);
        } else {
          kernels.calmest_mean(edges_.data(), pairs_, begin, columns, rows_ + i * pitch_);
        }
      }
    }
  }
  /// Of the i-th group; from column 0 to the end of the last block.
  const Value* row(std::size_t i) const { return rows_ + i * pitch_; }

 private:
  static constexpr bool kPossible = std::is_same_v<Value, std::int32_t>;

  struct Made {
    std::size_t group = 0;
    TapSource source = TapSource::curvature;
    std::array<const std::int32_t*, 4> points{};
  };

  void find_pairs(const LevelGridOf<Value>& grid, std::size_t parity_class, const RowIndex& first,
                  const GroupList& list) {
    for (std::size_t g = 0; g < list.linear; ++g) {
      if (!is_edge_pair(list.groups[g])) continue;
      const Offset& offset = list.groups[g].offset;
      Offset opposite{};
      for (std::size_t a = 0; a < kMaxAxes; ++a) opposite[a] = static_cast<std::int8_t>(-offset[a]);
      edges_[pairs_++] = {grid.run_value_row(parity_class, first, offset),
                          grid.run_value_row(parity_class, first, opposite), edge_factor(offset)};
    }
  }

  std::size_t pitch_;
  Value* rows_;
  std::size_t count_ = 0;
  std::size_t pairs_ = 0;
  std::array<Made, kMost> made_{};
  std::array<kernels::EdgePair, kMaxGroups> edges_{};
};

}  // namespace quern::codec::stencil
