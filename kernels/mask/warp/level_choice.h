// Planes and references as a warp chooses them for a mask that is coded by levels, and what it estimates that the mask
// takes: twins of best_level_planes, nearest_distance and estimate_levels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/common/bits.h"
#include "kernels/mask/levels/choice.h"
#include "kernels/mask/levels/rim.h"
#include "kernels/mask/warp/encode.h"
#include "kernels/mask/warp/memory.h"
#include "kernels/mask/warp/view.h"

namespace quern::kernels {

/// The sum over the lanes.
template <class X>
constexpr std::uint64_t lane_sum(typename X::template vec<std::uint64_t>& values) {
  X::inclusive_scan(values);
  return X::broadcast(values, kLanes - 1);
}

/// Cost of the planes in half bits, as far as it is below the limit. The bits are packed.
template <class X>
constexpr std::uint64_t lane_level_cost(const MaskPlanes& planes, std::uint64_t limit, LaneMaskShared& shared,
                                        const LaneMaskMemory& memory) {
  const auto count = static_cast<std::uint32_t>(planes.count());
  const std::uint32_t distance = equal_lane_bits_distance<X>(planes, shared, memory);
  const auto cost_of = [&](auto lane) { return LevelPlanesCost(lane_mask_bits<X>(memory, lane), planes, distance); };
  const auto windows = static_cast<std::uint32_t>(PlaneWindows(planes).of_plane);
  typename X::template vec<std::uint64_t> flat, others;
  if (windows < kLanes) {  // a plane a lane
    X::lanes([&](auto lane) {
      const auto cost = cost_of(lane);
      std::uint64_t sum = 0;
      for (auto i = static_cast<std::uint32_t>(lane); i < count; i += kLanes) {
        LevelPlaneCost plane;
        for (std::uint32_t k = 0; k < windows; ++k) plane += cost.of(i, k);
        sum += cost.of_plane(i, plane);
      }
      X::set(flat, lane, sum);
    });
    X::sync();
    return lane_sum<X>(flat);
  }
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < count && sum < limit; ++i) {
    X::lanes([&](auto lane) {
      const auto cost = cost_of(lane);
      LevelPlaneCost own;
      for (auto k = static_cast<std::uint32_t>(lane); k < windows; k += kLanes) own += cost.of(i, k);
      X::set(flat, lane, own.flat);
      X::set(others, lane, own.others);
    });
    const LevelPlaneCost plane{lane_sum<X>(flat), lane_sum<X>(others)};
    sum += cost_of(0).of_plane(i, plane);
  }
  X::sync();
  return sum;
}

/// The planes that a mask is coded in, and their cost. Packs the bits.
template <class X>
constexpr LevelPlanes best_lane_level_planes(const MaskPlanes& own, std::span<const MaskView> views,
                                             LaneMaskShared& shared, const LaneMaskMemory& memory) {
  X::sync();  // earlier bits were read
  pack_lane_bits<X>(static_cast<std::uint32_t>(own.cells), memory);
  return best_level_planes(own, views, [&](const MaskPlanes& planes, std::uint64_t limit) {
    return lane_level_cost<X>(planes, limit, shared, memory);
  });
}

/// The distance of the reference planes. The bits are packed.
template <class X>
constexpr std::uint64_t nearest_lane_distance(const MaskPlanes& planes, const LaneMaskMemory& memory) {
  const PlaneWindows windows(planes);
  const auto count = static_cast<std::uint32_t>(windows.of_plane);
  return nearest_distance_by(planes.count(), [&](std::uint64_t i, std::uint64_t distance) {
    typename X::template vec<std::uint32_t> differ;
    X::lanes([&](auto lane) {
      std::uint32_t sum = 0;
      for (auto k = static_cast<std::uint32_t>(lane); k < count; k += kLanes)
        sum += windows.differ(lane_mask_bits<X>(memory, lane), i, k, distance);
      X::set(differ, lane, sum);
    });
    return std::uint64_t{X::reduce_add(differ)};
  });
}

/// Bit j of the numbers of the classes of 64 cells, of those that are masked: special values from 0 on, verbatim last.
template <class X, class Lane>
constexpr std::uint64_t lane_number_bits(const LaneMaskMemory& memory, const MaskAlphabet& alphabet, unsigned j,
                                         std::uint32_t at, std::uint32_t cells, Lane lane) {
  const unsigned verbatim = alphabet.size() - 2;
  std::uint64_t word = 0;
  for (std::uint32_t x = 0; x < 64 && at + x < cells; ++x) {
    const std::uint8_t c = X::load(memory.classes + at + x, lane);
    if (c != 0) word |= static_cast<std::uint64_t>((c == kVerbatimClass ? verbatim : c - 1u) >> j & 1) << x;
  }
  return word;
}

/// What bit j of the numbers costs. The bits are packed.
template <class X>
constexpr LevelClassCost lane_class_cost(const MaskPlanes& planes, const MaskAlphabet& alphabet, unsigned j,
                                         const LaneMaskMemory& memory) {
  typename X::template vec<std::uint32_t> masked, changes, rim, others;
  X::lanes([&](auto lane) {
    const MaskRows rows(lane_mask_bits<X>(memory, lane), planes.cells, planes.cols);
    const auto along = static_cast<std::uint32_t>(rows.along());
    const auto count = static_cast<std::uint32_t>(rows.rows()) * along;
    LevelClassCost sum;
    for (auto item = static_cast<std::uint32_t>(lane); item < count; item += kLanes) {
      sum += level_class_cost(rows, item / along, item % along, [&](std::uint64_t at) {
        return lane_number_bits<X>(memory, alphabet, j, static_cast<std::uint32_t>(at),
                                   static_cast<std::uint32_t>(planes.cells), lane);
      });
    }
    X::set(masked, lane, static_cast<std::uint32_t>(sum.masked));
    X::set(changes, lane, static_cast<std::uint32_t>(sum.changes));
    X::set(rim, lane, static_cast<std::uint32_t>(sum.rim));
    X::set(others, lane, static_cast<std::uint32_t>(sum.others));
  });
  return {X::reduce_add(masked), X::reduce_add(changes), X::reduce_add(rim), X::reduce_add(others)};
}

/// About how many bytes a mask takes that is coded by levels. Its classes are known.
template <class X>
constexpr std::uint64_t estimate_lane_levels(const MaskPlanes& own, const LaneMaskCounts& mask,
                                             std::uint64_t element_bytes, std::span<const MaskView> views,
                                             LaneMaskShared& shared, const LaneMaskMemory& memory) {
  const LevelPlanes chosen = best_lane_level_planes<X>(own, views, shared, memory);
  std::uint64_t cost = chosen.cost;
  const MaskAlphabet alphabet = mask.alphabet();
  for (unsigned j = 0; j < bit_length(alphabet.size() - 2); ++j) {
    const LevelClassCost bit = lane_class_cost<X>(chosen.planes, alphabet, j, memory);
    cost += j == 0 ? std::min(bit.alone(), bit.beside_rim()) : bit.alone();
  }
  return level_bytes_estimate(cost, mask.specials, mask.verbatim, element_bytes);
}

}  // namespace quern::kernels
