// choose_candidates (choose.h) by a warp, over an execution model X: each lane has the tiles of its number and of 32
// more.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codecs/lorenzo/choose.h"
#include "kernels/common/unroll.h"

namespace quern::codec::lorenzo {

static_assert(kSampleTiles == 2 * kernels::kLanes);

/// The greedy set of candidates of `tiles` tiles, the costs of tile t under predictor p at costs[t * kPredictors + p].
/// Calls add(p) for each, in order; returns their number. A tile costs far less than 2^26 bytes, so sums fit.
template <class X, class Add>
constexpr std::uint32_t choose_candidates_lanes(const std::uint32_t* costs, std::uint32_t tiles,
                                                kernels::TileShape shape, Add&& add) {
  using kernels::kPredictors, kernels::kLanes, kernels::unroll;
  // Read once, all at the same time; what does not count costs nothing under any predictor.
  typename X::template vec<std::uint32_t> best[2], costs_of[2][kPredictors];
  X::lanes([&](auto lane) {
    unroll<2>([&](auto half) {
      const std::size_t tile = lane + half * kLanes;
      X::set(best[half], lane, tile < tiles ? UINT32_MAX : 0u);
      unroll<kPredictors>([&](auto p) {
        X::set(costs_of[half][p], lane, tile < tiles ? X::load(costs + tile * kPredictors + p, lane) : 0u);
      });
    });
  });
  const auto cheaper = [&](auto lane, auto half, auto p) {
    const std::uint32_t cost = X::get(costs_of[half][p], lane);
    const std::uint32_t held = X::get(best[half], lane);
    return cost < held ? cost : held;
  };
  std::uint32_t best_sum = UINT32_MAX;
  std::uint32_t count = 0;
  for (; count < kernels::kMaxCandidates; ++count) {
    std::uint32_t sum = UINT32_MAX;
    unsigned chosen = 0;
    unroll<kPredictors>([&](auto p) {
      if (!kernels::predictor_fits(static_cast<kernels::Predictor>(decltype(p)::value), shape)) return;
      typename X::template vec<std::uint32_t> own;
      X::lanes([&](auto lane) {
        std::uint32_t both = 0;
        unroll<2>([&](auto half) { both += cheaper(lane, half, p); });
        X::set(own, lane, both);
      });
      const std::uint32_t with = X::reduce_add(own);
      if (with >= sum) return;
      sum = with;
      chosen = p;
    });
    if (count > 0 && std::uint64_t{sum} + sum / 128 >= best_sum) break;
    add(static_cast<kernels::Predictor>(chosen));
    unroll<kPredictors>([&](auto p) {
      if (chosen != p) return;
      X::lanes([&](auto lane) { unroll<2>([&](auto half) { X::set(best[half], lane, cheaper(lane, half, p)); }); });
    });
    best_sum = sum;
  }
  return count;
}

}  // namespace quern::codec::lorenzo
