// In which rows and planes a mask is coded by levels, and about how many bits that takes: counted on bits, 64 cells at a
// time, without coding anything. Integers decide, so that every machine chooses alike.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/common/bits.h"
#include "kernels/mask/view.h"
#include "kernels/mask/view_choice.h"

namespace quern::kernels {

/// What cells of a plane cost, in half bits, and how many of them are unlike the reference.
struct LevelPlaneCost {
  std::uint64_t flat = 0;
  std::uint64_t others = 0;

  constexpr LevelPlaneCost& operator+=(const LevelPlaneCost& more) {
    flat += more.flat;
    others += more.others;
    return *this;
  }
};

/// Estimated cost of a mask's positions in half bits. A cell at an edge (unlike the cell before or the one above) takes
/// three half bits, one that is unlike both takes nine, and no cell more than two on average. A plane with a reference
/// takes five for each cell that differs from it, if that is less. Planes of one row have no cell above: edges and cells
/// that differ take eight bits there. One thread adds windows up, or the lanes of a warp.
template <class Bits>
class LevelPlanesCost {
 public:
  /// `distance`: of the reference planes.
  constexpr LevelPlanesCost(const Bits& bits, const MaskPlanes& planes, std::uint64_t distance)
      : bits_(bits), windows_(planes), distance_(distance) {}

  constexpr std::uint64_t windows() const { return windows_.of_plane; }
  /// Of window k of plane i.
  constexpr LevelPlaneCost of(std::uint64_t i, std::uint64_t k) const {
    const MaskPlanes& planes = windows_.planes;
    const std::uint64_t wanted = windows_.within(i, k), at = i * planes.plane_cells() + 64 * k;
    if (wanted == 0) return {};
    LevelPlaneCost cost;
    const std::uint64_t own = bits_.window(at);
    if (i > 0) cost.others = popcount((own ^ bits_.window(at - back(i))) & wanted);
    std::uint64_t left = (own ^ bits_.window_before(at, 1)) & wanted;
    if (k == 0) left &= ~UINT64_C(1);  // the plane's first cell
    std::uint64_t above = 0;
    if (64 * k >= planes.cols) {
      above = (own ^ bits_.window(at - planes.cols)) & wanted;
    } else if (planes.cols - 64 * k < 64) {
      above = (own ^ bits_.window_before(at, planes.cols)) & wanted & ~((UINT64_C(1) << (planes.cols - 64 * k)) - 1);
    }
    const std::uint64_t edges = planes.rows == 1 ? kLoneEdge * popcount(left)
                                                 : kEdge * popcount(left | above) + kCorner * popcount(left & above);
    cost.flat = std::min<std::uint64_t>(edges, kMost * popcount(wanted));
    return cost;
  }
  /// Of plane i, whose windows take so much.
  constexpr std::uint64_t of_plane(std::uint64_t i, const LevelPlaneCost& sum) const {
    if (i == 0) return sum.flat;
    const std::uint64_t other = windows_.planes.rows == 1 ? kLoneEdge : kOther;
    return sum.others == 0 ? 1 : kPlane + std::min(sum.flat, sum.others * other);
  }

 private:
  static constexpr std::uint64_t kEdge = 3, kCorner = 6, kLoneEdge = 16, kMost = 2, kOther = 5, kPlane = 4;

  constexpr std::uint64_t back(std::uint64_t i) const {
    return (i - reference_plane(i, distance_)) * windows_.planes.plane_cells();
  }

  Bits bits_;
  PlaneWindows windows_;
  std::uint64_t distance_;
};

/// Bytes that a mask takes, estimated: `cost` in half bits of its positions and classes.
constexpr std::uint64_t level_bytes_estimate(std::uint64_t cost, std::uint64_t specials, std::uint64_t verbatim,
                                             std::uint64_t element_bytes) {
  constexpr std::uint64_t kHead = 12;      // first states of four lanes are in the head
  constexpr std::uint64_t kHalfBits = 16;  // of a byte
  return kHead + (specials + verbatim) * element_bytes + cost / kHalfBits;
}

/// Rows and planes of a mask that is coded by levels, and their cost.
struct LevelPlanes {
  MaskPlanes planes;
  std::uint64_t cost = 0;
};

/// The cheapest of the planes of the box and those of the views, of which one must save four bytes; the first of equal
/// ones. Each row as a plane, which suits masks whose rows repeat, where that costs less than half of it.
/// `cost(planes, limit)` estimates in half bits, and may stop where it reaches the limit.
template <class Cost>
constexpr LevelPlanes best_level_planes(const MaskPlanes& own, std::span<const MaskView> views, Cost&& cost) {
  constexpr std::uint64_t kMustSave = 64;
  LevelPlanes best{own, cost(own, UINT64_MAX)};
  std::uint64_t limit = best.cost > kMustSave ? best.cost - kMustSave : 0;
  const auto offer = [&](const MaskView& view) {
    const MaskPlanes planes(own.cells, std::min(view.rows, own.cells / view.cols), view.cols);
    if (!is_level_view_of({planes.rows, planes.cols}, own) || planes == best.planes) return;
    const std::uint64_t bits = cost(planes, limit);
    if (bits >= limit) return;
    best = {planes, bits};
    limit = bits;
  };
  for (const MaskView& view : views) {
    if (view.cols <= own.cols) offer(view);
  }
  limit /= 2;
  std::uint64_t cols = 0;
  for (const MaskView& view : views) {
    if (view.cols != cols && view.cols <= own.cols) offer({1, view.cols});
    cols = view.cols;
  }
  if (cols != own.cols) offer({1, own.cols});
  return best;
}

/// As one thread does it. `hashes`: memory for one a plane, of which there may be as many as most_level_planes says.
inline LevelPlanes best_level_planes(const std::uint64_t* words, const MaskPlanes& own, std::span<const MaskView> views,
                                     std::uint64_t* hashes) {
  const MaskBits bits([words](std::uint64_t k) { return words[k]; });
  return best_level_planes(own, views, [&](const MaskPlanes& planes, std::uint64_t limit) {
    const PlaneWindows windows(planes);
    const std::uint64_t count = planes.count();
    for (std::uint64_t i = 0; i < count && count > 2; ++i) {  // two planes have one distance
      hashes[i] = 0;
      for (std::uint64_t k = 0; k < windows.of_plane; ++k) hashes[i] += windows.hashed(bits, i, k);
    }
    const LevelPlanesCost cost(bits, planes, most_equal_distance(hashes, count));
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < count && sum < limit; ++i) {
      LevelPlaneCost plane;
      for (std::uint64_t k = 0; k < windows.of_plane; ++k) plane += cost.of(i, k);
      sum += cost.of_plane(i, plane);
    }
    return sum;
  });
}

}  // namespace quern::kernels
