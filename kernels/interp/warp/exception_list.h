// The elements of a chunk that miss the bound, listed in C order by the warps of a thread block, from a bit for each
// element of each tile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/common/unroll.h"
#include "kernels/interp/interp_encode_job.h"

namespace quern::kernels {

template <class X>
class InterpExceptions {
 public:
  /// `found`: room for a number for each warp. A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr InterpExceptions(const Task& task, const InterpView& view, std::uint32_t* found)
      : job_(*reinterpret_cast<const InterpEncodeJob*>(task.job)),
        missed_(view.work<std::uint32_t>(job_.missed)),
        list_(view.work<std::uint32_t>(job_.exception_list)),
        result_(*static_cast<InterpEncodeResult*>(task.result)),
        found_(found),
        words_(job_.missed_words) {
    unroll<kInterpAxes>([&](auto a) {
      tiles_[a] = ((job_.chunk.extents[a] - 1) >> job_.chunk.tile_logs[a]) + 1;
      elems_ *= job_.chunk.extents[a];
    });
  }

  template <class Block>
  constexpr void run(Block& block) const {
    block.all([&](std::uint32_t warp, std::uint32_t warps) { note(warp, any(warp, warps) ? 1 : 0); });
    std::uint32_t count = 0;
    const auto add_up = [&](std::uint32_t warps) {
      for (std::uint32_t w = 0; w < warps; ++w) count += X::load_same(found_ + w);
    };
    // Mostly there are none.
    std::uint32_t all_warps = 0;
    block.all([&](std::uint32_t /*warp*/, std::uint32_t warps) {
      if (all_warps == 0) add_up(all_warps = warps);
    });
    if (count > 0) {
      count = 0;
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        std::uint32_t own = 0;
        for_missed(warp, warps, [&](std::uint32_t /*first*/, std::uint32_t flags) { own += popcount(flags); });
        note(warp, own);
      });
      block.all([&](std::uint32_t warp, std::uint32_t warps) { put(warp, warps); });
      add_up(all_warps);
    }
    block.first([&] {
      X::lanes([&](std::size_t lane) {
        if (lane != 0) return;
        X::store(&result_.exceptions, lane, count);
        X::store(&result_.left, lane, count > job_.exception_room ? 1u : 0u);
      });
    });
  }

 private:
  constexpr void note(std::uint32_t warp, std::uint32_t number) const {
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(found_ + warp, lane, number);
    });
  }

  /// Whether some element of a share of the tiles misses the bound.
  constexpr bool any(std::uint32_t warp, std::uint32_t warps) const {
    const std::uint32_t all = tiles_[0] * tiles_[1] * tiles_[2] * words_;
    typename X::template vec<bool> some;
    X::lanes([&](std::size_t lane) {
      std::uint32_t bits = 0;
      for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < all; i += warps * kLanes)
        bits |= X::load(missed_ + i, lane);
      X::set(some, lane, bits != 0);
    });
    return X::any(some);
  }

  /// Calls f(first element, a bit for each lane) for 32 elements after the other of the share of a warp: a run of the
  /// chunk in C order.
  template <class F>
  constexpr void for_missed(std::uint32_t warp, std::uint32_t warps, const F& f) const {
    const std::uint32_t blocks = (elems_ + kLanes - 1) / kLanes;
    const std::uint32_t share = (blocks + warps - 1) / warps;
    const std::uint32_t begin = warp * share < blocks ? warp * share : blocks;
    const std::uint32_t end = begin + share < blocks ? begin + share : blocks;
    for (std::uint32_t block = begin; block < end; ++block) {
      typename X::template vec<bool> missed;
      X::lanes([&](std::size_t lane) {
        const std::uint32_t element = block * kLanes + static_cast<std::uint32_t>(lane);
        X::set(missed, lane, element < elems_ && misses(element, lane));
      });
      f(block * kLanes, X::ballot(missed));
    }
  }

  constexpr bool misses(std::uint32_t element, std::size_t lane) const {
    const std::uint32_t row = element / job_.chunk.extents[2];
    const std::uint32_t place[kInterpAxes] = {row / job_.chunk.extents[1], row % job_.chunk.extents[1],
                                              element % job_.chunk.extents[2]};
    std::uint32_t tile = 0;
    std::uint32_t in_tile = 0;
    unroll<kInterpAxes>([&](auto a) {
      const unsigned log = job_.chunk.tile_logs[a];
      const std::uint32_t at = place[a] >> log;
      const std::uint32_t left = job_.chunk.extents[a] - (at << log);
      tile = tile * tiles_[a] + at;
      in_tile = in_tile * (left < 1u << log ? left : 1u << log) + (place[a] - (at << log));
    });
    return (X::load(missed_ + tile * words_ + in_tile / 32, lane) >> (in_tile % 32) & 1) != 0;
  }

  constexpr void put(std::uint32_t warp, std::uint32_t warps) const {
    std::uint32_t at = 0;
    for (std::uint32_t w = 0; w < warp; ++w) at += X::load_same(found_ + w);
    for_missed(warp, warps, [&](std::uint32_t first, std::uint32_t flags) {
      X::lanes([&](std::size_t lane) {
        if ((flags >> lane & 1) == 0) return;
        const std::uint32_t to = at + static_cast<std::uint32_t>(popcount(flags & ((1u << lane) - 1)));
        if (to < job_.exception_room) X::store(list_ + to, lane, first + static_cast<std::uint32_t>(lane));
      });
      at += static_cast<std::uint32_t>(popcount(flags));
    });
  }

  const InterpEncodeJob& job_;
  const std::uint32_t* missed_;
  std::uint32_t* list_;
  InterpEncodeResult& result_;
  std::uint32_t* found_;
  std::uint32_t words_;
  std::uint32_t tiles_[kInterpAxes] = {};
  std::uint32_t elems_ = 1;
};

}  // namespace quern::kernels
