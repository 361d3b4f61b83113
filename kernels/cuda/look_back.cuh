// Where a CTA's bytes go, in one pass: decoupled look-back (Merrill and Garland, "Single-pass parallel prefix scan with
// decoupled look-back", NVIDIA NVR-2016-002), 32 predecessors at a step. A state is one 64-bit word, so that flag and
// sum are never seen apart and no order between memory accesses is needed.
//
// CTAs must take their numbers from a counter in memory, not from blockIdx: then whoever is waited for has started.
#pragma once

#include <cstdint>

#include "kernels/cuda/device_memory.cuh"
#include "kernels/cuda/warp_lanes.cuh"

namespace quern::kernels {

/// What is known of a number: nothing (memory cleared to 0), its own bytes, or the sum of its own and all before.
enum class LookBackState : unsigned { unknown = 0, own = 1, sum = 2 };
inline constexpr unsigned kLookBackFlagBits = 2;

__device__ __forceinline__ std::uint64_t look_back_word(LookBackState state, std::uint64_t bytes) {
  return bytes << kLookBackFlagBits | static_cast<std::uint64_t>(state);
}
__device__ __forceinline__ LookBackState look_back_state(std::uint64_t word) {
  return static_cast<LookBackState>(word & ((1u << kLookBackFlagBits) - 1));
}

/// Tells the others of `own` bytes of number `index` and returns the sum of all before; called by a whole warp.
/// `states` has one word for each number.
__device__ __forceinline__ std::uint64_t look_back(std::uint64_t* states, std::uint64_t index, std::uint64_t own) {
  const unsigned lane = WarpLanes::lane();
  if (lane == 0) store_relaxed(states + index, look_back_word(LookBackState::own, own));
  std::uint64_t before = 0;
  for (std::uint64_t end = index; end != 0;) {
    const bool exists = lane < end;
    std::uint64_t word = 0;
    std::uint32_t known = 0;
    std::uint32_t sums = 0;
    std::uint32_t needed = 0;
    for (bool first = true;; first = false) {
      if (!first) __nanosleep(64);
      word = exists ? load_relaxed(states + (end - 1 - lane)) : look_back_word(LookBackState::sum, 0);
      known = WarpLanes::ballot(look_back_state(word) != LookBackState::unknown);
      sums = WarpLanes::ballot(look_back_state(word) == LookBackState::sum);
      // Lanes up to the nearest sum: those before it are not asked for.
      needed = sums == 0 ? WarpLanes::kAll : sums ^ (sums - 1);
      if ((known & needed) == needed) break;
    }
    std::uint64_t part = (needed >> lane & 1) != 0 ? word >> kLookBackFlagBits : 0;
    for (int distance = kLanes / 2; distance != 0; distance /= 2)
      part += __shfl_xor_sync(WarpLanes::kAll, part, distance);
    before += part;
    if (sums != 0) break;
    end -= kLanes;  // no sum among 32: none of the lanes was beyond the first number
  }
  if (lane == 0) store_relaxed(states + index, look_back_word(LookBackState::sum, before + own));
  return before;
}

}  // namespace quern::kernels
