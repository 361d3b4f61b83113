// From the codes of a chunk to its symbols, by the warps of a thread block: the contexts of its classes are fitted level
// by level, symbols are counted, and exceptions are listed. All sums are of integers, so that it does not matter in
// which order lanes add.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/lanes.h"
#include "kernels/common/unroll.h"
#include "kernels/interp/context_fit.h"
#include "kernels/interp/interp_encode_job.h"
#include "kernels/interp/warp/exception_list.h"
#include "kernels/interp/warp/spreads.h"

namespace quern::kernels {

/// A number that is summed by additions of 32 bits: its lowest bits, and those above them.
struct SplitSum {
  static constexpr unsigned kLowBits = 9;
  std::uint32_t low;
  std::uint32_t high;

  [[gnu::always_inline]] constexpr std::uint64_t value() const { return (std::uint64_t{high} << kLowBits) + low; }
};

/// What the warps of a chunk share.
struct InterpSymbolMemory {
  /// Of a class: of codes whose spread has the same bin.
  struct FitBin {
    std::uint32_t count;
    SplitSum spread;
    SplitSum magnitude;
  };
  FitBin fits[kInterpClasses][kContextBins];
  InterpContext contexts[kInterpClasses];
  std::uint32_t counts[kContextBins][kResidualTokens];
  std::uint32_t exceptions[kMaxBlockWarps];  ///< that each warp has found
};
/// All codes of a chunk in one bin: 2^19 at most, of spreads below 2^18 and magnitudes below 2^14.
static_assert((kInterpMostMagnitude * kInterpSpreadUnit) >> SplitSum::kLowBits < 1u << 13);

template <class X>
class InterpSymbols {
 public:
  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr InterpSymbols(const Task& task, const InterpView& view, InterpSymbolMemory& memory)
      : view_(view),
        job_(*reinterpret_cast<const InterpEncodeJob*>(task.job)),
        result_(*static_cast<InterpEncodeResult*>(task.result)),
        memory_(memory),
        symbols_(view.work<std::uint16_t>(job_.symbols)),
        spreads_(view) {}

  template <class Block>
  constexpr void run(Block& block) {
    block.all([&](std::uint32_t warp, std::uint32_t warps) { clear_counts(warp, warps); });
    block.all([&](std::uint32_t warp, std::uint32_t warps) { take_anchors(warp, warps); });
    end_level(block, 0);
    for (std::uint32_t level = 1; level < view_.job->level_count; ++level) {
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        spreads_.take_coarse(level, warp, warps);
        clear_fits(warp, warps);
      });
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        for_classes(level, [&](const InterpClassPlan& plan, std::uint32_t i) { gather(plan, i, warp, warps); });
      });
      block.first([&] { fit(level); });
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        for_classes(level, [&](const InterpClassPlan& plan, std::uint32_t i) { set_symbols(plan, i, warp, warps); });
      });
      end_level(block, level);
    }
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      X::lanes([&](std::size_t lane) {
        for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < kCounts; i += warps * kLanes)
          X::store(&result_.counts[0][0] + i, lane, X::load(&memory_.counts[0][0] + i, lane));
      });
    });
  }

 private:
  template <class T>
  using vec = typename X::template vec<T>;
  static constexpr std::uint32_t kCounts = kContextBins * kResidualTokens;

  constexpr void clear_counts(std::uint32_t warp, std::uint32_t warps) const {
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < kCounts; i += warps * kLanes)
        X::store(&memory_.counts[0][0] + i, lane, std::uint32_t{0});
    });
  }
  constexpr void clear_fits(std::uint32_t warp, std::uint32_t warps) const {
    X::lanes([&](std::size_t lane) {
      for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < kInterpClasses * kContextBins;
           i += warps * kLanes)
        X::store(&memory_.fits[0][0] + i, lane, InterpSymbolMemory::FitBin{0, {0, 0}, {0, 0}});
    });
  }

  /// Calls f(class, its number in the level).
  template <class F>
  constexpr void for_classes(std::uint32_t level, const F& f) const {
    const InterpLevelPlan& plan = view_.levels[level];
    for (std::uint32_t c = plan.class_begin; c < plan.class_end; ++c) f(view_.classes[c], c - plan.class_begin);
  }

  constexpr void take_anchors(std::uint32_t warp, std::uint32_t warps) const {
    const auto* const from = view_.table<std::int32_t>(job_.anchor_codes);
    for (std::uint32_t first = warp * kLanes; first < job_.anchor_count; first += warps * kLanes) {
      vec<std::uint32_t> symbols;
      X::lanes([&](std::size_t lane) {
        const std::uint32_t i = first + static_cast<std::uint32_t>(lane);
        X::set(symbols, lane, std::uint32_t{kNoSymbol});
        if (i >= job_.anchor_count) return;
        const std::int32_t code = X::load(from + i, lane);
        X::store(view_.codes + i, lane, code);
        set_symbol(i, kInterpAnchorBin, code, symbols, lane);
      });
      count(symbols);
    }
  }

  constexpr void gather(const InterpClassPlan& plan, std::uint32_t number, std::uint32_t warp,
                        std::uint32_t warps) const {
    const typename InterpSpreads<X>::OfClass spreads(spreads_, plan);
    const std::int32_t* const codes = view_.codes + plan.first;
    const auto stride = static_cast<std::uint32_t>(interp_fit_stride(plan.count));
    const std::uint32_t columns = plan.extents[2];
    const std::uint32_t rows = (plan.extents[0] * plan.extents[1] + stride - 1) / stride;
    for (std::uint32_t first = warp * kLanes; first < rows * columns; first += warps * kLanes) {
      vec<std::uint32_t> bins;
      vec<std::uint32_t> spread;
      vec<std::uint32_t> magnitude;
      X::lanes([&](std::size_t lane) {
        const std::uint32_t i = first + static_cast<std::uint32_t>(lane);
        X::set(bins, lane, kContextBins);
        X::set(spread, lane, std::uint32_t{0});
        X::set(magnitude, lane, std::uint32_t{0});
        if (i >= rows * columns) return;
        const std::uint32_t point = i / columns * stride * columns + i % columns;
        const std::uint32_t around = spreads.at(point, lane);
        X::set(bins, lane, context_bin(around));
        X::set(spread, lane, around);
        X::set(magnitude, lane, std::uint32_t{interp_magnitude(X::load(codes + point, lane))});
      });
      add_to_fits(memory_.fits[number], bins, spread, magnitude);
    }
  }

  /// Most lanes have the bin of the first one: theirs are summed before they are added.
  constexpr void add_to_fits(InterpSymbolMemory::FitBin* fits, const vec<std::uint32_t>& bins,
                             const vec<std::uint32_t>& spread, const vec<std::uint32_t>& magnitude) const {
    const std::uint32_t lead = X::broadcast(bins, 0);
    vec<std::uint32_t> counts;
    vec<std::uint32_t> spreads;
    vec<std::uint32_t> magnitudes;
    X::lanes([&](std::size_t lane) {
      const bool with_lead = X::get(bins, lane) == lead;
      X::set(counts, lane, with_lead ? 1u : 0u);
      X::set(spreads, lane, with_lead ? X::get(spread, lane) : 0u);
      X::set(magnitudes, lane, with_lead ? X::get(magnitude, lane) : 0u);
    });
    const std::uint32_t all = X::reduce_add(counts);
    const std::uint32_t spread_sum = X::reduce_add(spreads);
    const std::uint32_t magnitude_sum = X::reduce_add(magnitudes);
    X::lanes([&](std::size_t lane) {
      const std::uint32_t bin = X::get(bins, lane);
      if (bin == kContextBins || (bin == lead && lane != 0)) return;
      InterpSymbolMemory::FitBin& to = fits[bin];
      X::add_to(&to.count, lane, lane == 0 ? all : 1u);
      add_to(to.spread, lane == 0 ? spread_sum : X::get(spread, lane), lane);
      add_to(to.magnitude, lane == 0 ? magnitude_sum : X::get(magnitude, lane), lane);
    });
  }
  [[gnu::always_inline]] static constexpr void add_to(SplitSum& sum, std::uint32_t value, std::size_t lane) {
    X::add_to(&sum.low, lane, value & ((1u << SplitSum::kLowBits) - 1));
    X::add_to(&sum.high, lane, value >> SplitSum::kLowBits);
  }

  /// The classes of a level, one to a lane.
  constexpr void fit(std::uint32_t level) const {
    const std::uint32_t begin = view_.levels[level].class_begin;
    const std::uint32_t count = view_.levels[level].class_end - begin;
    X::lanes([&](std::size_t lane) {
      if (lane >= count) return;
      const InterpSymbolMemory::FitBin* const fits = memory_.fits[lane];
      const InterpContext context = interp_fit_context([&](std::size_t b) {
        const InterpSymbolMemory::FitBin bin = X::load(fits + b, lane);
        return InterpFitBin{bin.count, bin.spread.value(), bin.magnitude.value()};
      });
      X::store(memory_.contexts + lane, lane, context);
      X::store(result_.contexts + begin + lane, lane, context);
    });
  }

  constexpr void set_symbols(const InterpClassPlan& plan, std::uint32_t number, std::uint32_t warp,
                             std::uint32_t warps) const {
    const typename InterpSpreads<X>::OfClass spreads(spreads_, plan);
    const std::int32_t* const codes = view_.codes + plan.first;
    const InterpContext context = X::load_same(memory_.contexts + number);
    for (std::uint32_t first = warp * kLanes; first < plan.count; first += warps * kLanes) {
      vec<std::uint32_t> symbols;
      X::lanes([&](std::size_t lane) {
        const std::uint32_t i = first + static_cast<std::uint32_t>(lane);
        X::set(symbols, lane, std::uint32_t{kNoSymbol});
        if (i >= plan.count) return;
        const std::uint32_t bin = context_bin(interp_context(spreads.at(i, lane), context));
        set_symbol(plan.first + i, bin, X::load(codes + i, lane), symbols, lane);
      });
      count(symbols);
    }
  }

  [[gnu::always_inline]] constexpr void set_symbol(std::uint32_t at, std::uint32_t bin, std::int32_t code,
                                                   vec<std::uint32_t>& symbols, std::size_t lane) const {
    const std::uint32_t symbol = bin * kTokenStride + token_of(magnitude_of(code));
    X::set(symbols, lane, symbol);
    X::store(symbols_ + at, lane, static_cast<std::uint16_t>(symbol));
  }
  /// Most lanes have the symbol of the first one: these are counted at once.
  constexpr void count(const vec<std::uint32_t>& symbols) const {
    const std::uint32_t lead = X::broadcast(symbols, 0);
    vec<bool> same;
    X::lanes([&](std::size_t lane) { X::set(same, lane, X::get(symbols, lane) == lead); });
    const auto all = static_cast<std::uint32_t>(popcount(X::ballot(same)));
    X::lanes([&](std::size_t lane) {
      const std::uint32_t symbol = X::get(symbols, lane);
      if (symbol == kNoSymbol || (symbol == lead && lane != 0)) return;
      X::add_to(&memory_.counts[symbol / kTokenStride][symbol % kTokenStride], lane, lane == 0 ? all : 1u);
    });
  }

  constexpr std::uint32_t section(std::uint32_t level) const {
    return level < view_.job->level_count ? view_.classes[view_.levels[level].class_begin].section
                                          : kInterpMostSections;
  }
  /// Where sections end with a level, what is counted until then is theirs and that of those before.
  template <class Block>
  constexpr void end_level(Block& block, std::uint32_t level) const {
    const std::uint32_t begin = section(level);
    const std::uint32_t end = section(level + 1);
    if (begin == end) return;
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      X::lanes([&](std::size_t lane) {
        for (std::uint32_t t = warp * kLanes + static_cast<std::uint32_t>(lane); t < kResidualTokens;
             t += warps * kLanes) {
          std::uint32_t sum = 0;
          for (std::uint32_t b = 0; b < kContextBins; ++b) sum += X::load(&memory_.counts[b][t], lane);
          for (std::uint32_t s = begin; s < end; ++s) X::store(&result_.tokens[s][t], lane, sum);
        }
      });
    });
  }

  const InterpView& view_;
  const InterpEncodeJob& job_;
  InterpEncodeResult& result_;
  InterpSymbolMemory& memory_;
  std::uint16_t* symbols_;
  InterpSpreads<X> spreads_;
};

/// Makes symbols, counts and contexts of the codes of a chunk, and lists its exceptions.
template <class X, class Block>
constexpr void encode_interp_symbols(Block& block, const EncodeTask& task, InterpSymbolMemory& memory) {
  const JobTask chunk = interp_chunk_task(task);
  const InterpView view(chunk);
  InterpExceptions<X>(task, view, memory.exceptions).run(block);
  InterpSymbols<X>(task, view, memory).run(block);
}

}  // namespace quern::kernels
