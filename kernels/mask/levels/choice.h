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

/// Estimated cost of a mask's positions in half bits. `distance`: of the reference planes. A cell at an edge (unlike the
/// cell before or the one above) takes three half bits, one that is unlike both takes nine, and no cell more than two on
/// average. A plane with a reference takes five for each cell that differs from it, if that is less. Planes of one row
/// have no cell above: edges and cells that differ take eight bits there.
template <class Bits>
constexpr std::uint64_t level_planes_cost(const Bits& bits, const MaskPlanes& planes, std::uint64_t distance) {
  constexpr std::uint64_t kEdge = 3, kCorner = 6, kLoneEdge = 16, kMost = 2, kOther = 5, kPlane = 4;
  const PlaneWindows windows(planes);
  const std::uint64_t count = planes.count();
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t first = i * planes.plane_cells();
    const std::uint64_t back = i == 0 ? 0 : (i - reference_plane(i, distance)) * planes.plane_cells();
    std::uint64_t flat = 0, others = 0;
    for (std::uint64_t k = 0; k < windows.of_plane; ++k) {
      const std::uint64_t wanted = windows.within(i, k), at = first + 64 * k;
      if (wanted == 0) continue;
      const std::uint64_t own = bits.window(at);
      if (back != 0) others += popcount((own ^ bits.window(at - back)) & wanted);
      std::uint64_t left = (own ^ bits.window_before(at, 1)) & wanted;
      if (k == 0) left &= ~UINT64_C(1);  // the plane's first cell
      std::uint64_t above = 0;
      if (64 * k >= planes.cols) {
        above = (own ^ bits.window(at - planes.cols)) & wanted;
      } else if (planes.cols - 64 * k < 64) {
        above = (own ^ bits.window_before(at, planes.cols)) & wanted & ~((UINT64_C(1) << (planes.cols - 64 * k)) - 1);
      }
      const std::uint64_t edges = planes.rows == 1 ? kLoneEdge * popcount(left)
                                                   : kEdge * popcount(left | above) + kCorner * popcount(left & above);
      flat += std::min<std::uint64_t>(edges, kMost * popcount(wanted));
    }
    sum += back == 0     ? flat
           : others == 0 ? 1
                         : kPlane + std::min(flat, others * (planes.rows == 1 ? kLoneEdge : kOther));
  }
  return sum;
}

/// Rows and planes of a mask that is coded by levels, and their cost.
struct LevelPlanes {
  MaskPlanes planes;
  std::uint64_t cost = 0;
};

/// The cheapest of the planes of the box and those of the views, of which one must save four bytes; the first of equal
/// ones. Each row as a plane, which suits masks whose rows repeat, where that costs less than half of it.
/// `cost(planes)` estimates in half bits.
template <class Cost>
constexpr LevelPlanes best_level_planes(const MaskPlanes& own, std::span<const MaskView> views, Cost&& cost) {
  constexpr std::uint64_t kMustSave = 64;
  LevelPlanes best{own, cost(own)};
  std::uint64_t limit = best.cost > kMustSave ? best.cost - kMustSave : 0;
  const auto offer = [&](const MaskView& view) {
    const MaskPlanes planes(own.cells, std::min(view.rows, own.cells / view.cols), view.cols);
    if (!is_level_view_of({planes.rows, planes.cols}, own) || planes == best.planes) return;
    const std::uint64_t bits = cost(planes);
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
  return best_level_planes(own, views, [&](const MaskPlanes& planes) {
    const PlaneWindows windows(planes);
    const std::uint64_t count = planes.count();
    for (std::uint64_t i = 0; i < count; ++i) {
      hashes[i] = 0;
      for (std::uint64_t k = 0; k < windows.of_plane; ++k) hashes[i] += windows.hashed(bits, i, k);
    }
    return level_planes_cost(bits, planes, most_equal_distance(hashes, count));
  });
}

}  // namespace quern::kernels
