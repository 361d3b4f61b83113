// A chunk in raster order, encoded by the warps of a CTA up to its symbols: all warps turn a plane's elements into
// targets and sum up what its points get from planes before, then the lanes of one warp walk its rows side by side,
// each four columns behind the one before, as decoders do; when all codes are known, all warps look for exceptions and
// count symbols. Every number is that of codecs/stencil/chunk_encode.cpp.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/number_elements.h"
#include "kernels/common/round_to_integer.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/stencil/raster_encode_job.h"
#include "kernels/stencil/rules.h"
#include "kernels/stencil/warp/encode_result.h"
#include "kernels/stencil/warp/raster_grid.h"
#include "kernels/stencil/warp/raster_walk.h"
#include "kernels/stencil/warp/residual_streams.h"

namespace quern::kernels {

/// What the warps of a chunk share.
struct RasterEncodeShared {
  RasterWalkMemory walk;
  std::uint32_t counts[kContextBins][kResidualTokens];
  std::uint32_t exceptions[kMaxBlockWarps];    ///< that each warp has found
  std::uint32_t out_of_range[kMaxBlockWarps];  ///< not 0: a sum or value was too large
};

/// A chunk under way. The same in all lanes.
struct RasterCodes {
  const EncodeTask* task = nullptr;
  const RasterEncodeJob* job = nullptr;
  RasterGrid grid;
  std::int64_t* targets = nullptr;
  std::int32_t* codes = nullptr;
  std::uint16_t* symbols = nullptr;
  std::uint32_t* exception_list = nullptr;

  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr explicit RasterCodes(const Task& of)
      : task(&of),
        job(reinterpret_cast<const RasterEncodeJob*>(of.job)),
        grid(of),
        targets(reinterpret_cast<std::int64_t*>(of.work + job->targets)),
        codes(reinterpret_cast<std::int32_t*>(of.work + job->codes)),
        symbols(reinterpret_cast<std::uint16_t*>(of.work + job->symbols)),
        exception_list(reinterpret_cast<std::uint32_t*>(of.work + job->exception_list)) {}

  [[gnu::always_inline]] constexpr std::uint32_t plane_elems() const { return job->raster.rows * job->raster.columns; }
  [[gnu::always_inline]] constexpr std::uint32_t elems() const { return job->raster.planes * plane_elems(); }

  /// Bits of an element by its number in C order: they lie side by side.
  template <class X>
  [[gnu::always_inline]] constexpr std::uint64_t element(std::uint32_t index, std::size_t lane) const {
    return load_element<X>(task->elements, job->raster.element, index, lane);
  }
  template <class X>
  [[gnu::always_inline]] constexpr bool special(std::uint32_t index, std::size_t lane) const {
    return job->raster.masked && X::load(task->special + index, lane) != 0;
  }
};

/// A plane's elements in units, as the nearest integers and half of what residuals are multiples of; 0 for what is not
/// finite.
template <class X>
constexpr void set_raster_targets(const RasterCodes& codes, std::uint32_t plane, std::uint32_t warp,
                                  std::uint32_t warps) {
  const RasterJob& raster = codes.job->raster;
  const std::uint32_t first = plane * codes.plane_elems();
  const std::int64_t half = (std::int64_t{1} << raster.fraction_bits) >> 1;
  const std::uint32_t elems = codes.plane_elems();
  for (std::uint32_t begin = warp * kRasterBlock; begin < elems; begin += warps * kRasterBlock) {
    X::lanes([&](std::size_t lane) {
      std::uint64_t bits[kRasterLanePoints] = {};
      for_lane_points(begin, elems, lane,
                      [&](std::size_t i, std::uint32_t at) { bits[i] = codes.template element<X>(first + at, lane); });
      for_lane_points(begin, elems, lane, [&](std::size_t i, std::uint32_t at) {
        const double original = with_number_element(raster.element, [&](auto type) -> double {
          using Type = decltype(type);
          return Type::value(static_cast<typename Type::Bits>(bits[i]));
        });
        const double units = in_units(original, raster.base, codes.job->inverse);
        X::store(codes.targets + at, lane, nearest_integer(units) + half);
      });
    });
  }
}

/// The rows of a plane through the closed loop, by one warp.
template <class X, bool kPlanes>
class RasterPointCoder {
  template <class T>
  using vec = typename X::template vec<T>;

 public:
  constexpr RasterPointCoder(const RasterCodes& codes, std::uint32_t plane, RasterWalkMemory& memory)
      : values_(codes.grid.values + plane * codes.plane_elems()),
        targets_of_plane_(codes.targets),
        codes_(codes.codes),
        special_(codes.job->raster.masked ? codes.task->special : nullptr),
        fraction_bits_(codes.job->raster.fraction_bits),
        most_(static_cast<std::uint64_t>(codes.job->most)),
        walk_(codes.grid, plane, 0, kLanes - 1, memory) {}

  /// Returns whether a value was too large, and so perhaps a sum.
  constexpr bool run() {
    X::lanes([&](std::size_t lane) { X::set(value_bits_used_, lane, std::uint64_t{0}); });
    walk_.run(*this);
    vec<bool> out_of_range;
    X::lanes([&](std::size_t lane) { X::set(out_of_range, lane, X::get(value_bits_used_, lane) >= most_); });
    return X::any(out_of_range);
  }

  [[gnu::always_inline]] constexpr void clear(std::size_t lane) {
    unroll<kRowSkew>([&](auto i) {
      if constexpr (kPlanes) X::set(next_before_[i], lane, std::int64_t{0});
      X::set(next_targets_[i], lane, std::int64_t{0});
    });
  }
  [[gnu::always_inline]] constexpr void load(std::uint32_t in_plane, std::size_t i, std::size_t lane) {
    if constexpr (kPlanes)
      X::set(next_before_[i], lane, std::bit_cast<std::int64_t>(X::load(values_ + in_plane, lane)));
    X::set(next_targets_[i], lane, X::load(targets_of_plane_ + in_plane, lane));
  }
  [[gnu::always_inline]] constexpr void shift(std::size_t lane) {
    unroll<kRowSkew>([&](auto i) {
      if constexpr (kPlanes) X::set(before_[i], lane, X::get(next_before_[i], lane));
      X::set(targets_[i], lane, X::get(next_targets_[i], lane));
    });
  }
  [[gnu::always_inline]] constexpr void step(const WalkPoint& point, std::size_t i, std::size_t lane) {
    std::int64_t before = 0;
    if constexpr (kPlanes) before = X::get(before_[i], lane);
    const std::int64_t predicted = walk_.predict(walk_.rows_sum(point, lane), before, lane);
    // The next point waits for the value, not for the code.
    const std::uint64_t left =
        static_cast<std::uint64_t>(X::get(targets_[i], lane)) - static_cast<std::uint64_t>(predicted);
    std::uint64_t value = static_cast<std::uint64_t>(predicted) + (left >> fraction_bits_ << fraction_bits_);
    std::int64_t code = static_cast<std::int64_t>(left) >> fraction_bits_;
    constexpr std::int64_t kMost = kMaxMagnitude;
    if (code > kMost || code < -kMost) {
      code = code > 0 ? kMost : -kMost;
      value = static_cast<std::uint64_t>(predicted) + (static_cast<std::uint64_t>(code) << fraction_bits_);
    }
    if (special_ != nullptr && point.here && X::load(special_ + point.place, lane) != 0) {
      value = static_cast<std::uint64_t>(walk_.last(lane));
      code = 0;
    }
    const auto kept = static_cast<std::int64_t>(value);
    walk_.push(point, kept, lane);
    if (!point.here) return;
    // A power of two is the most; what does not reach it has none of its bits, nor those above.
    X::set(value_bits_used_, lane, X::get(value_bits_used_, lane) | static_cast<std::uint64_t>(kept ^ (kept >> 63)));
    X::store(codes_ + point.place, lane, static_cast<std::int32_t>(code));
  }

 private:
  const double* values_;  ///< of the plane
  const std::int64_t* targets_of_plane_;
  std::int32_t* codes_;
  const std::uint8_t* special_;  ///< null: no element is
  std::uint32_t fraction_bits_;
  std::uint64_t most_;
  RasterWalk<X, kPlanes, false> walk_;
  vec<std::uint64_t> value_bits_used_;
  vec<std::int64_t> before_[kRowSkew];  ///< what planes before give to sums
  vec<std::int64_t> next_before_[kRowSkew];
  vec<std::int64_t> targets_[kRowSkew];
  vec<std::int64_t> next_targets_[kRowSkew];
};

/// Elements of a warp: a run of blocks of kLanes each, so that what warps find is in order.
struct WarpRun {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  constexpr WarpRun(std::uint32_t elems, std::uint32_t warp, std::uint32_t warps) {
    const std::uint32_t blocks = (elems + kLanes - 1) / kLanes;
    const std::uint32_t share = (blocks + warps - 1) / warps * kLanes;
    begin = warp * share < elems ? warp * share : elems;
    end = begin + share < elems ? begin + share : elems;
  }
};

/// How many of a warp's elements miss the bound. Which they are is left, a bit for each lane, where the first value of
/// each block was: values are not needed any more.
template <class X>
constexpr void count_raster_exceptions(const RasterCodes& codes, std::uint32_t warp, std::uint32_t warps,
                                       RasterEncodeShared& shared) {
  const RasterEncodeJob& job = *codes.job;
  const WarpRun run(codes.elems(), warp, warps);
  std::uint32_t found = 0;
  // What the next block needs is loaded before one is looked at.
  typename X::template vec<std::uint64_t> next_bits;
  typename X::template vec<double> next_value;
  typename X::template vec<bool> next_special;
  const auto load = [&](std::uint32_t i, std::size_t lane) {
    const bool here = i < run.end;
    X::set(next_special, lane, !here || codes.template special<X>(i, lane));
    X::set(next_bits, lane, here ? codes.template element<X>(i, lane) : 0);
    X::set(next_value, lane, here ? X::load(codes.grid.values + i, lane) : 0);
  };
  X::lanes([&](std::size_t lane) { load(run.begin + static_cast<std::uint32_t>(lane), lane); });
  for (std::uint32_t base = run.begin; base < run.end; base += kLanes) {
    typename X::template vec<bool> missed;
    X::lanes([&](std::size_t lane) {
      const bool special = X::get(next_special, lane);
      const std::uint64_t bits = X::get(next_bits, lane);
      const double number = X::get(next_value, lane) * job.raster.unit + job.raster.base;
      load(base + kLanes + static_cast<std::uint32_t>(lane), lane);
      X::set(missed, lane, !special && with_number_element(job.raster.element, [&](auto type) -> bool {
               using Type = decltype(type);
               return !keeps_bound<Type>(static_cast<typename Type::Bits>(bits), Type::bits(number), job.bound);
             }));
    });
    const std::uint32_t flags = X::ballot(missed);
    X::sync();
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(codes.grid.values + base, lane, std::bit_cast<double>(std::uint64_t{flags}));
    });
    found += popcount(flags);
  }
  X::lanes([&](std::size_t lane) {
    if (lane == 0) X::store(shared.exceptions + warp, lane, found);
  });
}

/// Indices of exceptions in C order, as far as there is room. `flags` has which there are, a bit for each lane, where
/// the first number of each block is, `found` how many each warp has.
template <class X>
constexpr void list_exceptions(const double* flags, std::uint32_t elems, std::uint32_t room, std::uint32_t* list,
                               std::uint32_t warp, std::uint32_t warps, const std::uint32_t* found) {
  if (X::load_same(found + warp) == 0) return;
  const WarpRun run(elems, warp, warps);
  std::uint32_t at = 0;
  for (std::uint32_t w = 0; w < warp; ++w) at += X::load_same(found + w);
  for (std::uint32_t base = run.begin; base < run.end; base += kLanes) {
    const auto missed = static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(X::load_same(flags + base)));
    X::lanes([&](std::size_t lane) {
      if ((missed >> lane & 1) == 0) return;
      const std::uint32_t to = at + popcount(missed & ((1u << lane) - 1));
      if (to < room) X::store(list + to, lane, base + static_cast<std::uint32_t>(lane));
    });
    at += popcount(missed);
  }
}

/// Symbols of all elements, and how often each occurs.
template <class X>
constexpr void set_raster_symbols(const RasterCodes& codes, std::uint32_t warp, std::uint32_t warps,
                                  RasterEncodeShared& shared) {
  const RasterJob& raster = codes.job->raster;
  for_raster_blocks(raster, raster.planes * raster.rows, warp, warps, [&](std::uint32_t line, std::uint32_t begin) {
    const std::uint32_t plane = line / raster.rows;
    const std::uint32_t row = line % raster.rows;
    X::lanes([&](std::size_t lane) {
      const auto magnitude = [&](std::uint32_t place) {
        return capped_magnitude(X::load(codes.codes + place, lane), kMaxContextMagnitude);
      };
      const std::uint32_t first = begin + static_cast<std::uint32_t>(lane);
      std::uint32_t contexts[kRasterLanePoints] = {};
      sum_contexts<X>(codes.grid, raster.context_before, plane, row, first, contexts, magnitude);
      sum_contexts<X>(codes.grid, raster.context_rows, plane, row, first, contexts, magnitude);
      unroll<kRasterLanePoints>([&](auto i) {
        const std::uint32_t x = first + static_cast<std::uint32_t>(i) * kLanes;
        if (x >= raster.columns) return;
        const std::uint32_t place = line * raster.columns + x;
        if (codes.template special<X>(place, lane)) {
          X::store(codes.symbols + place, lane, std::uint16_t{kNoSymbol});
          return;
        }
        std::uint32_t context = raster.context_constant + contexts[i];
        if (x > 0) context += raster.near_context[0] * magnitude(place - 1);
        if (x > 1) context += raster.near_context[1] * magnitude(place - 2);
        const std::int32_t code = X::load(codes.codes + place, lane);
        const std::uint32_t level = context_bin(context);
        const unsigned token = token_of(magnitude_of(code));
        X::store(codes.symbols + place, lane, static_cast<std::uint16_t>(level * kTokenStride + token));
        X::add_to(&shared.counts[level][token], lane, std::uint32_t{1});
      });
    });
  });
}

template <class X>
constexpr void clear_raster_shared(std::uint32_t warp, std::uint32_t warps, RasterEncodeShared& shared) {
  clear_symbol_counts<X>(warp, warps, shared);
  X::lanes([&](std::size_t lane) {
    if (lane == 0) X::store(shared.out_of_range + warp, lane, std::uint32_t{0});
  });
}

/// Encodes a chunk up to its symbols.
template <class X, class Block>
constexpr void encode_raster_chunk(Block& block, const EncodeTask& task, RasterEncodeShared& shared) {
  const RasterCodes codes(task);
  const RasterJob& raster = codes.job->raster;
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    clear_raster_shared<X>(warp, warps, shared);
    fill_walk_memory<X>(codes.grid, warp, shared.walk);
  });
  bool out_of_range = false;  // of the first warp, which writes it
  if (raster.planes > 1) {
    for (std::uint32_t plane = 0; plane < raster.planes; ++plane) {
      if (raster.mean && plane > 0)
        block.all(
            [&](std::uint32_t warp, std::uint32_t warps) { update_raster_mean<X>(codes.grid, plane, warp, warps); });
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        set_raster_targets<X>(codes, plane, warp, warps);
        sum_planes_before<X, false>(codes.grid, plane, warp, warps, shared.out_of_range);
      });
      block.first([&] { out_of_range = RasterPointCoder<X, true>(codes, plane, shared.walk).run() || out_of_range; });
    }
  } else {
    block.all([&](std::uint32_t warp, std::uint32_t warps) { set_raster_targets<X>(codes, 0, warp, warps); });
    block.first([&] { out_of_range = RasterPointCoder<X, false>(codes, 0, shared.walk).run(); });
  }
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    count_raster_exceptions<X>(codes, warp, warps, shared);
    set_raster_symbols<X>(codes, warp, warps, shared);
  });
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    list_exceptions<X>(codes.grid.values, codes.elems(), codes.job->exceptions, codes.exception_list, warp, warps,
                       shared.exceptions);
    store_encode_result<X>(*static_cast<RasterEncodeResult*>(task.result), out_of_range, codes.job->exceptions, warp,
                           warps, shared);
  });
}

}  // namespace quern::kernels
