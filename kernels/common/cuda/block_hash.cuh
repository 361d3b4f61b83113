// XXH3-64 by the calling CTA. All warps but the first sum up blocks of the input, each block alone; the first adds
// these sums in their order, which is the only part that is a chain.
#pragma once

#include <cstdint>

#include "kernels/common/cuda/warp_lanes.cuh"
#include "kernels/common/warp/xxh3.h"

namespace quern::kernels {

/// What a CTA of that many warps shares for it. Rounds take turns with two sets of sums.
template <unsigned Warps>
struct CtaHashShared {
  /// Blocks that a warp sums up in a round.
  static constexpr unsigned kBlocks = 2;
  static constexpr unsigned kRoundBlocks = (Warps - 1) * kBlocks;
  std::uint64_t sums[2][kRoundBlocks * xxh3::kAccumulators];
  std::uint64_t hash;
};

/// The same in all threads; called by all of them. Memory that the CTA's threads wrote since the last barrier must not
/// be part of the input.
template <unsigned Warps, class X = WarpLanes>
__device__ __forceinline__ std::uint64_t cta_xxh3(const LaneHashInput& input, CtaHashShared<Warps>& shared) {
  using Hash = LaneLongHash<X>;
  using Shared = CtaHashShared<Warps>;
  const unsigned warp = threadIdx.x / kLanes;
  if (input.total() <= xxh3::kMaxMediumBytes) {
    if (warp == 0) {
      const std::uint64_t hash = xxh3::hash_up_to_medium<X>(input);
      if (X::lane() == 0) shared.hash = hash;
    }
  } else {
    Hash hash(input);
    const std::uint64_t blocks = hash.blocks();
    const unsigned first = (warp - 1) * Shared::kBlocks;  // of a round
    typename Hash::Block words[Shared::kBlocks]{};
    const auto load = [&](std::uint64_t begin) {
      unroll<Shared::kBlocks>([&](auto i) {
        if (begin + first + i < blocks) hash.load(begin + first + i, words[i]);
      });
    };
    if (warp != 0) load(0);
    std::uint64_t* fresh = shared.sums[0];
    std::uint64_t* complete = shared.sums[1];
    for (std::uint64_t begin = 0; begin < blocks; begin += Shared::kRoundBlocks) {
      if (warp != 0) {
        unroll<Shared::kBlocks>([&](auto i) {
          if (begin + first + i < blocks) {
            typename Hash::Words sum;
            hash.sum_block(words[i], sum);
            if (X::lane() < xxh3::kAccumulators) fresh[(first + i) * xxh3::kAccumulators + X::lane()] = sum;
          }
        });
        load(begin + Shared::kRoundBlocks);
      } else if (begin != 0) {
        hash.add_blocks(complete, Shared::kRoundBlocks);
      }
      __syncthreads();
      std::uint64_t* const swapped = fresh;
      fresh = complete;
      complete = swapped;
    }
    if (warp == 0) {
      if (blocks != 0) hash.add_blocks(complete, static_cast<unsigned>((blocks - 1) % Shared::kRoundBlocks) + 1);
      const std::uint64_t whole = hash.finish();
      if (X::lane() == 0) shared.hash = whole;
    }
  }
  __syncthreads();
  return shared.hash;
}

}  // namespace quern::kernels
