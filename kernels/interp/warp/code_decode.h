// The codes of a chunk, decoded by the warps of a thread block. One warp takes codes, 32 at a time in the order of
// coding; the others look up meanwhile which distributions the next ones have. A class sees only classes that are odd
// along fewer axes: those that are odd along as many are worked on without a break between them.
#pragma once

#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/entropy/warp/residual_stream.h"
#include "kernels/interp/interp_job.h"
#include "kernels/interp/warp/anchors.h"
#include "kernels/interp/warp/spreads.h"

namespace quern::kernels {

/// Windows of 32 codes that are taken in a step.
inline constexpr std::uint32_t kInterpStepWindows = 24;

/// What the warps of a chunk share.
struct InterpCodeMemory {
  SlotBuckets buckets;
  StreamWords words;
  std::uint8_t bins[2][kInterpStepWindows][kLanes];  ///< one half is written while the other one is read
  bool damaged;                                      ///< lanes did not end where they should
};
/// What devices of all kinds have, less what the runtime takes.
static_assert(sizeof(InterpCodeMemory) <= 99 * 1024 - 1024);

/// Windows [begin, end) of a class. They are counted in its section, so that stream l has lane l of each.
struct InterpStep {
  std::uint32_t class_number = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;  ///< begin: none

  constexpr bool any() const { return begin != end; }
};

template <class X>
class InterpCodes {
 public:
  constexpr InterpCodes(const InterpView& view, InterpCodeMemory& memory)
      : view_(view),
        memory_(memory),
        sections_(view.table<InterpSection>(view.job->sections)),
        spreads_(view),
        stream_(memory.buckets, memory.words) {}

  constexpr InterpStep first() const { return open(0); }
  /// The step after one; none after the last.
  constexpr InterpStep after(const InterpStep& step) const {
    const InterpClassPlan& plan = view_.classes[step.class_number];
    const std::uint32_t windows = windows_end(plan);
    if (step.end < windows) return {step.class_number, step.end, cut(step.end, windows)};
    return step.class_number + 1 < view_.job->class_count ? open(step.class_number + 1) : InterpStep{};
  }
  /// True when `next` needs no code of `now`, which comes before it.
  constexpr bool independent(const InterpStep& now, const InterpStep& next) const {
    const InterpClassPlan& a = view_.classes[now.class_number];
    const InterpClassPlan& b = view_.classes[next.class_number];
    return a.level == b.level && popcount(a.point_class) == popcount(b.point_class);
  }
  constexpr const InterpSpreads<X>& spreads() const { return spreads_; }
  constexpr std::uint32_t level(const InterpStep& step) const { return view_.classes[step.class_number].level; }

  /// Takes the codes of a step whose bins are in that half. Called by one warp, for step after step.
  constexpr void take(const InterpStep& step, std::uint32_t half) {
    const InterpClassPlan& plan = view_.classes[step.class_number];
    const InterpSection& section = sections_[plan.section];
    const std::uint32_t begin = plan.first - section.first;
    if (begin == 0 && step.begin == 0) stream_.open(section.lanes, view_.table<std::uint8_t>(view_.job->words));
    // Copies: what is read in the loop lies in registers then, as stores could not change it.
    const std::uint32_t count = plan.count;
    std::int32_t* const out = view_.codes + plan.first;
    stream_.resume();
    // The bins of the next window are on their way while codes are taken.
    vec<std::uint32_t> next;
    const auto fetch = [&](std::uint32_t w) {
      X::lanes([&](std::size_t lane) {
        X::set(next, lane, std::uint32_t{X::load(&memory_.bins[half][w - step.begin][lane], lane)});
      });
    };
    fetch(step.begin);
    for (std::uint32_t w = step.begin; w < step.end; ++w) {
      const vec<std::uint32_t> bins = next;
      vec<std::int32_t> codes;
      if (w + 1 < step.end) fetch(w + 1);
      stream_.take_window(bins, codes);
      X::lanes([&](std::size_t lane) {
        const std::uint32_t number = w * kLanes + static_cast<std::uint32_t>(lane) - begin;
        if (number < count) X::store(out + number, lane, X::get(codes, lane));
      });
    }
    stream_.pause();
    if (plan.first + plan.count != section.end || step.end != windows_end(plan)) return;
    const bool finished = stream_.finished();
    X::lanes([&](std::size_t lane) {
      if (lane == 0 && !finished) X::store(&memory_.damaged, lane, true);
    });
  }

  /// Writes the bins of a step to that half. Called by each of some warps.
  constexpr void look_up(const InterpStep& step, std::uint32_t half, std::uint32_t warp, std::uint32_t warps) const {
    const InterpClassPlan& plan = view_.classes[step.class_number];
    const std::uint32_t begin = plan.first - sections_[plan.section].first;
    const std::uint32_t count = plan.count;
    const typename InterpSpreads<X>::OfClass spreads(spreads_, plan);
    const InterpContext context = plan.context;
    const bool anchors = plan.point_class == 0;
    for (std::uint32_t w = step.begin + warp; w < step.end; w += warps) {
      X::lanes([&](std::size_t lane) {
        const std::uint32_t number = w * kLanes + static_cast<std::uint32_t>(lane) - begin;
        std::uint32_t bin = kAbsentBin;
        if (number < count)
          bin = anchors ? kInterpAnchorBin : context_bin(interp_context(spreads.at(number, lane), context));
        X::store(&memory_.bins[half][w - step.begin][lane], lane, static_cast<std::uint8_t>(bin));
      });
    }
  }

 private:
  template <class T>
  using vec = typename X::template vec<T>;

  constexpr InterpStep open(std::uint32_t number) const {
    const InterpClassPlan& plan = view_.classes[number];
    const std::uint32_t begin = (plan.first - sections_[plan.section].first) / kLanes;
    return {number, begin, cut(begin, windows_end(plan))};
  }
  constexpr std::uint32_t windows_end(const InterpClassPlan& plan) const {
    return (plan.first + plan.count - sections_[plan.section].first + kLanes - 1) / kLanes;
  }
  static constexpr std::uint32_t cut(std::uint32_t begin, std::uint32_t end) {
    return end - begin > kInterpStepWindows ? begin + kInterpStepWindows : end;
  }
  const InterpView& view_;
  InterpCodeMemory& memory_;
  const InterpSection* sections_;
  InterpSpreads<X> spreads_;
  ResidualStream<X> stream_;
};

/// Decodes the codes and anchors of a chunk; returns whether its lanes ended where they should. A block is the warps of
/// a thread block, at least 2, as in kernels/stencil/warp/level_decode.h.
template <class X, class Block>
constexpr bool decode_interp_codes(Block& block, const JobTask& task, InterpCodeMemory& memory) {
  const InterpView view(task);
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    fill_slot_buckets<X>(*view.job, view.table<StreamStarts>(view.job->starts), warp, warps, memory.buckets);
  });
  block.first([&] {
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(&memory.damaged, lane, false);
    });
  });
  InterpCodes<X> codes(view, memory);
  InterpStep now;
  InterpStep next = codes.first();
  std::uint32_t opened = 0;
  for (std::uint32_t half = 0; now.any() || next.any(); half ^= 1) {
    const bool ready = next.any() && (!now.any() || codes.independent(now, next));
    const std::uint32_t level = codes.level(next);
    if (ready && level != opened) {
      block.all([&](std::uint32_t warp, std::uint32_t warps) { codes.spreads().take_coarse(level, warp, warps); });
      opened = level;
    }
    block.first_and_others(
        [&] {
          if (now.any()) codes.take(now, half ^ 1);
        },
        [&](std::uint32_t warp, std::uint32_t warps) {
          if (ready) codes.look_up(next, half, warp, warps);
        });
    now = ready ? next : InterpStep{};
    if (ready) next = codes.after(next);
  }
  if (view.job->wide)
    InterpAnchors<X, std::int64_t>(view).run(block);
  else
    InterpAnchors<X, std::int32_t>(view).run(block);
  return !memory.damaged;
}

}  // namespace quern::kernels
