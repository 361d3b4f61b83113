// Planes and their references as a warp chooses them for a mask: twin of best_planes and best_reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/common/bits.h"
#include "kernels/mask/view_choice.h"
#include "kernels/mask/warp/memory.h"

namespace quern::kernels {

/// The distance at which most of `count` planes are repeated, by their hashes, which all lanes see.
template <class X>
constexpr std::uint32_t equal_lane_distance(std::uint32_t count, LaneMaskShared& shared, const LaneMaskMemory& memory) {
  if (count < 3) return 1;
  const std::uint32_t most =
      count - 1 < kMaxReferenceDistance ? count - 1 : static_cast<std::uint32_t>(kMaxReferenceDistance);
  X::lanes([&](auto lane) {
    for (auto d = static_cast<std::uint32_t>(lane) + 1; d <= most; d += kLanes) {
      std::uint32_t equal = 0;
      for (std::uint32_t i = 1; i < count; ++i) {
        equal += X::load(memory.hashes + i, lane) == X::load(memory.hashes + reference_plane(i, d), lane) ? 1 : 0;
      }
      X::store(shared.counts + d - 1, lane, equal);
    }
  });
  X::sync();
  std::uint32_t best = 1, best_equal = 0;
  for (std::uint32_t d = 1; d <= most; ++d) {
    const std::uint32_t equal = X::load_same(shared.counts + d - 1);
    if (equal > best_equal) {
      best = d;
      best_equal = equal;
    }
  }
  X::sync();
  return best;
}

/// The distance at which most planes are repeated, as best_reference finds it.
template <class X>
constexpr std::uint32_t best_lane_reference(const MaskPlanes& planes, LaneMaskShared& shared,
                                            const LaneMaskMemory& memory) {
  const auto count = static_cast<std::uint32_t>(planes.count()),
             whole = static_cast<std::uint32_t>(planes.plane_cells());
  if (count < 3) return 1;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint8_t* plane = memory.classes + i * whole;
    const auto plane_cells = static_cast<std::uint32_t>(planes.rows_of(i) * planes.cols);
    X::lanes([&](auto lane) {
      std::uint64_t hash = 0;
      for (auto at = 8 * static_cast<std::uint32_t>(lane); at <= plane_cells; at += 8 * kLanes) {
        std::uint64_t cells = 0;
        for (std::uint32_t k = 0; k < 8; ++k) {
          if (at + k < plane_cells) cells |= static_cast<std::uint64_t>(X::load(plane + at + k, lane)) << (8 * k);
        }
        hash += hashed_cells(cells, at);
      }
      X::store(shared.values + lane, lane, hash);
    });
    X::sync();
    in_one_lane<X>([&] {
      std::uint64_t hash = 0;
      for (unsigned l = 0; l < kLanes; ++l) hash += X::load(shared.values + l, 0);
      X::store(memory.hashes + i, 0, hash);
    });
    X::sync();
  }
  return equal_lane_distance<X>(count, shared, memory);
}

/// One bit a cell, set where its class is not 0, and a word of zeros more.
template <class X>
constexpr void pack_lane_bits(std::uint32_t cells, const LaneMaskMemory& memory) {
  X::lanes([&](auto lane) {
    for (auto k = static_cast<std::uint32_t>(lane); k < cells / 64 + 2; k += kLanes) {
      std::uint64_t word = 0;
      for (std::uint32_t x = 0; x < 64 && 64 * k + x < cells; ++x) {
        word |= static_cast<std::uint64_t>(X::load(memory.classes + 64 * k + x, lane) != 0 ? 1 : 0) << x;
      }
      X::store(memory.bits + k, lane, word);
    }
  });
  X::sync();
}

/// The packed bits as a lane sees them.
template <class X, class Lane>
constexpr auto lane_mask_bits(const LaneMaskMemory& memory, Lane lane) {
  return MaskBits([&memory, lane](std::uint64_t k) { return X::load(memory.bits + k, lane); });
}

/// The distance at which most planes are repeated, by hashes of their packed bits.
template <class X>
constexpr std::uint32_t equal_lane_bits_distance(const MaskPlanes& planes, LaneMaskShared& shared,
                                                 const LaneMaskMemory& memory) {
  const PlaneWindows windows(planes);
  const auto count = static_cast<std::uint32_t>(planes.count());
  const auto of_plane = static_cast<std::uint32_t>(windows.of_plane);
  if (count < 3) return 1;
  X::lanes([&](auto lane) {
    const auto bits = lane_mask_bits<X>(memory, lane);
    for (auto i = static_cast<std::uint32_t>(lane); i < count; i += kLanes) {
      std::uint64_t hash = 0;
      for (std::uint32_t k = 0; k < of_plane; ++k) hash += windows.hashed(bits, i, k);
      X::store(memory.hashes + i, lane, hash);
    }
  });
  X::sync();
  return equal_lane_distance<X>(count, shared, memory);
}

/// Cells that a view does not foresee.
template <class X>
constexpr std::uint64_t lane_surprises(const MaskPlanes& planes, LaneMaskShared& shared, const LaneMaskMemory& memory) {
  const PlaneWindows windows(planes);
  const auto count = static_cast<std::uint32_t>(planes.count());
  const auto of_plane = static_cast<std::uint32_t>(windows.of_plane);
  const std::uint32_t distance = equal_lane_bits_distance<X>(planes, shared, memory);
  typename X::template vec<std::uint32_t> sums;
  X::lanes([&](auto lane) {
    const auto bits = lane_mask_bits<X>(memory, lane);
    std::uint32_t sum = 0;
    for (auto t = static_cast<std::uint32_t>(lane); t < count * of_plane; t += kLanes) {
      sum += windows.surprises(bits, t / of_plane, t % of_plane, distance);
    }
    X::set(sums, lane, sum);
  });
  X::sync();
  return X::reduce_add(sums);
}

/// The planes that a mask is coded in, as best_planes finds them.
template <class X>
constexpr MaskPlanes best_lane_planes(const MaskPlanes& own, std::span<const MaskView> views, LaneMaskShared& shared,
                                      const LaneMaskMemory& memory) {
  bool packed = false;
  return best_planes(own, views, [&](const MaskPlanes& planes) {
    if (!packed) pack_lane_bits<X>(static_cast<std::uint32_t>(own.cells), memory);
    packed = true;
    return lane_surprises<X>(planes, shared, memory);
  });
}

}  // namespace quern::kernels
