// The finest level of a chunk in levels, encoded up to its symbols by the warps of a CTA, a job for each step.
// Every number is that of codecs/stencil/levels/loop.h, of the samples that of codecs/stencil/levels/fit.cpp: sums of
// integers, exact in whatever order.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/bits.h"
#include "kernels/common/number_elements.h"
#include "kernels/entropy/residual_tokens.h"
#include "kernels/stencil/level_encode_job.h"
#include "kernels/stencil/raster_encode_job.h"
#include "kernels/stencil/warp/encode_result.h"
#include "kernels/stencil/warp/level_grid.h"
#include "kernels/stencil/warp/level_patch.h"
#include "kernels/stencil/warp/level_predict.h"
#include "kernels/stencil/warp/raster_grid.h"
#include "kernels/stencil/warp/residual_streams.h"

namespace quern::kernels {

/// What the warps of a chunk share.
struct LevelEncodeShared {
  LevelPlaces places[kMaxBlockWarps];
  std::uint32_t counts[kContextBins][kResidualTokens];
  std::uint32_t exceptions[kMaxBlockWarps];    ///< that each warp has found
  std::uint32_t out_of_range[kMaxBlockWarps];  ///< not 0: a value was too large
};

/// A chunk under way. The same in all lanes.
struct LevelCodes {
  JobTask task;
  const LevelEncodeJob* job = nullptr;
  LevelGridView grid;
  const void* elements = nullptr;
  std::int32_t* codes = nullptr;
  std::uint16_t* symbols = nullptr;
  std::uint32_t* missed = nullptr;
  std::uint32_t* exception_list = nullptr;

  /// A template, as constexpr functions else may not cast bytes.
  template <class Task>
  constexpr explicit LevelCodes(const Task& of)
      : task{of.job, of.work, nullptr, of.special},
        job(reinterpret_cast<const LevelEncodeJob*>(of.job)),
        grid(task, 0),
        elements(of.elements),
        codes(reinterpret_cast<std::int32_t*>(of.work + job->codes)),
        symbols(reinterpret_cast<std::uint16_t*>(of.work + job->symbols)),
        missed(reinterpret_cast<std::uint32_t*>(of.work + job->missed)),
        exception_list(reinterpret_cast<std::uint32_t*>(of.work + job->exception_list)) {}

  constexpr std::uint32_t sweeps() const { return level_sweeps(grid); }
  constexpr LevelSweep sweep(std::uint32_t number) const {
    return level_sweep(grid, LevelGridView::table<ClassPlan>(task, job->level.plans), number);
  }
  /// Where a sweep may begin in the order of coding, and where the next one may.
  constexpr std::uint32_t begin_of(std::uint32_t number) const {
    const std::uint32_t classes = grid.stage->class_count;
    return number / classes * job->first[classes] + job->first[number % classes];
  }
  /// Its first point.
  constexpr std::uint32_t code_of(std::uint32_t number, const LevelSweep& sweep) const {
    const std::uint32_t points = sweep.first_row * grid.stage->views[sweep.parity_class].extents[kLastAxis];
    return begin_of(number) + points % kLanes;
  }
  /// The first element of a row of a class, counted from the chunk's first.
  [[gnu::always_inline]] constexpr std::uint64_t row_at(std::uint32_t parity_class, std::uint32_t row) const {
    const LevelRow at(grid.stage->views[parity_class], row);
    std::uint64_t offset = class_parity(parity_class, kLastAxis) * job->level.strides[kLastAxis];
    unroll<kRowAxes>([&](auto a) {
      constexpr auto kAxis = static_cast<std::uint32_t>(decltype(a)::value);
      const bool halved = job->level.hierarchical(kAxis);
      const std::uint64_t place =
          halved ? 2 * std::uint64_t{at.index[kAxis]} + class_parity(parity_class, kAxis) : at.index[kAxis];
      offset += place * job->level.strides[kAxis];
    });
    return offset;
  }
  /// Elements from one point of a row to the next.
  [[gnu::always_inline]] constexpr std::uint64_t step() const { return 2 * job->level.strides[kLastAxis]; }
  /// Of an element, only where some are: their classes lie as they do.
  template <class X>
  [[gnu::always_inline]] constexpr bool special(std::uint64_t at, std::size_t lane) const {
    return X::load(task.special + at, lane) != 0;
  }
  template <class X>
  [[gnu::always_inline]] constexpr std::uint64_t element(std::uint64_t at, std::size_t lane) const {
    return load_element<X>(elements, job->level.element, at, lane);
  }
};

/// What an element is in units.
template <class X>
constexpr double level_target(const LevelCodes& chunk, std::uint64_t at, std::size_t lane) {
  const LevelEncodeJob& job = *chunk.job;
  const std::uint64_t bits = chunk.template element<X>(at, lane);
  const double original = with_number_element(job.level.element, [&](auto type) -> double {
    using Type = decltype(type);
    return Type::value(static_cast<typename Type::Bits>(bits));
  });
  return nearest(in_units(original, job.level.base, job.inverse));
}

/// Class 0 as the host left it; its halos are not set.
template <class X>
constexpr void take_coarser_points(const LevelCodes& chunk, std::uint32_t warp, std::uint32_t warps) {
  const LevelView& view = chunk.grid.stage->views[0];
  const std::uint32_t columns = view.extents[kLastAxis];
  const auto* const values = LevelGridView::table<double>(chunk.task, chunk.job->coarser_values);
  const auto* const magnitudes = LevelGridView::table<std::uint32_t>(chunk.task, chunk.job->coarser_magnitudes);
  const std::uint32_t points = view.rows * columns;
  X::lanes([&](std::size_t lane) {
    for (std::uint32_t i = warp * kLanes + static_cast<std::uint32_t>(lane); i < points; i += warps * kLanes) {
      const std::uint32_t place = view.first + i / columns * view.stride + i % columns;
      X::store(chunk.grid.values + place, lane, X::load(values + i, lane));
      X::store(chunk.grid.residuals + place, lane, X::load(magnitudes + i, lane));
    }
  });
}

/// A value and the residual that it comes from.
struct CodedLevelPoint {
  double value = 0;
  std::int32_t code = 0;
};

/// Sets points of rows of a class to what make(element of column 0, column, place, lane) gives. Notes values that are
/// too large.
template <class X, class Make>
constexpr void set_level_points(const LevelCodes& chunk, std::uint32_t parity_class, std::uint32_t first_row,
                                std::uint32_t rows, std::uint32_t warp, std::uint32_t warps, LevelEncodeShared& shared,
                                const Make& make) {
  const LevelView& view = chunk.grid.stage->views[parity_class];
  const std::uint32_t columns = view.extents[kLastAxis];
  const std::uint32_t blocks = (columns + kLanes - 1) / kLanes;
  const double most = chunk.job->most;
  typename X::template vec<bool> out_of_range;
  X::lanes([&](std::size_t lane) { X::set(out_of_range, lane, false); });
  for (std::uint32_t t = warp; t < rows * blocks; t += warps) {
    const std::uint32_t row = first_row + t / blocks;
    const std::uint64_t row_at = chunk.row_at(parity_class, row);
    X::lanes([&](std::size_t lane) {
      const std::uint32_t x = t % blocks * kLanes + static_cast<std::uint32_t>(lane);
      if (x >= columns) return;
      const std::uint32_t place = view.first + row * view.stride + x;
      const CodedLevelPoint point = make(row_at, x, place, lane);
      if (!(point.value > -most && point.value < most)) X::set(out_of_range, lane, true);
      X::store(chunk.grid.values + place, lane, point.value);
      X::store(chunk.grid.residuals + place, lane, static_cast<std::uint32_t>(point.code));
    });
  }
  if (!X::any(out_of_range)) return;
  X::lanes([&](std::size_t lane) {
    if (lane == 0) X::store(shared.out_of_range + warp, lane, std::uint32_t{1});
  });
}

/// Values of a class as the nearest codes of the originals alone would give them. Special elements count as the
/// ordinary one before them in their row, or else the one behind.
template <class X>
constexpr void round_level_points(const LevelCodes& chunk, std::uint32_t parity_class, std::uint32_t warp,
                                  std::uint32_t warps, LevelEncodeShared& shared) {
  const LevelView& view = chunk.grid.stage->views[parity_class];
  const std::uint32_t columns = view.extents[kLastAxis];
  const auto quantum = static_cast<double>(chunk.grid.stage->quantum);
  const double inverse_quantum = 1 / quantum;
  set_level_points<X>(
      chunk, parity_class, 0, view.rows, warp, warps, shared,
      [&](std::uint64_t row_at, std::uint32_t x, std::uint32_t, std::size_t lane) -> CodedLevelPoint {
        std::uint32_t from = x;
        if (chunk.job->level.masked) {
          const auto special = [&](std::uint32_t column) {
            return chunk.template special<X>(row_at + column * chunk.step(), lane);
          };
          while (from > 0 && special(from)) --from;
          if (special(from)) from = x + 1;
          while (from < columns && special(from)) ++from;
        }
        if (from == columns) return {};
        return {nearest(level_target<X>(chunk, row_at + from * chunk.step(), lane) * inverse_quantum) * quantum, 0};
      });
}

/// Codes and values of a sweep that is predicted, and with a sequential axis how often each token occurs.
template <class X>
constexpr void code_level_points(const LevelCodes& chunk, const LevelSweep& sweep, std::uint32_t warp,
                                 std::uint32_t warps, LevelEncodeShared& shared) {
  const LevelEncodeJob& job = *chunk.job;
  const auto quantum = static_cast<double>(chunk.grid.stage->quantum);
  const double inverse_quantum = 1 / quantum;
  set_level_points<X>(
      chunk, sweep.parity_class, sweep.first_row, sweep.rows, warp, warps, shared,
      [&](std::uint64_t row_at, std::uint32_t x, std::uint32_t place, std::size_t lane) -> CodedLevelPoint {
        const std::uint64_t at = row_at + x * chunk.step();
        const auto predicted = std::bit_cast<std::int64_t>(X::load(chunk.grid.values + place, lane));
        const auto number = static_cast<double>(predicted);
        double value = 0;
        double code = 0;
        if (job.level.masked && chunk.template special<X>(at, lane)) {
          value = static_cast<double>(predicted < job.level.low    ? job.level.low
                                      : predicted > job.level.high ? job.level.high
                                                                   : predicted);
        } else {
          code = nearest((level_target<X>(chunk, at, lane) - number) * inverse_quantum);
          constexpr auto kMostCode = static_cast<double>(std::uint32_t{kMaxMagnitude});
          code = code > kMostCode ? kMostCode : code < -kMostCode ? -kMostCode : code;
          value = number + code * quantum;
        }
        if (job.step == LevelEncodeStep::planes)
          X::add_to(&shared.counts[0][token_of(magnitude_of(static_cast<std::int32_t>(code)))], lane, std::uint32_t{1});
        return {value, static_cast<std::int32_t>(code)};
      });
}

/// What a feature is at the columns of a sampled row, a lane a column.
template <class X>
class LevelSampler {
 public:
  constexpr LevelSampler(const LevelCodes& chunk, const LevelSampling& sampling)
      : chunk_(chunk), grid_(chunk.grid), sampling_(sampling), view_(grid_.stage->views[sampling.parity_class]) {}

  constexpr void run(std::uint32_t warp, std::uint32_t warps) const {
    const auto* const rows =
        LevelGridView::table<LevelSampleRow>(chunk_.task, chunk_.job->sample_rows) + sampling_.rows;
    const auto* const features =
        LevelGridView::table<LevelFeature>(chunk_.task, chunk_.job->features) + sampling_.features;
    const std::uint32_t count = sampling_.row_count * sampling_.feature_count;
    for (std::uint32_t i = warp; i < count; i += warps) {
      const LevelSampleRow& row = rows[i / sampling_.feature_count];
      std::uint64_t* const out = out_of(chunk_.task) + std::size_t{i} * sampling_.columns;
      sample(row, features[i % sampling_.feature_count], out);
    }
  }

 private:
  template <class Task>
  constexpr std::uint64_t* out_of(const Task& task) const {
    return reinterpret_cast<std::uint64_t*>(task.work + sampling_.out);
  }

  constexpr void sample(const LevelSampleRow& row, const LevelFeature& feature, std::uint64_t* out) const {
    const LevelRow at(view_, row.row);
    const bool inside = row_is_inside(grid_, at);
    bool none = false;
    unroll<kRowAxes>([&](auto a) {
      constexpr auto kAxis = static_cast<std::uint32_t>(decltype(a)::value);
      none = none || (feature.along == kAxis && at.index[kAxis] == 0);
    });
    for (std::uint32_t begin = 0; begin < sampling_.columns; begin += kLanes) {
      X::lanes([&](std::size_t lane) {
        const std::uint32_t s = begin + static_cast<std::uint32_t>(lane);
        if (s >= sampling_.columns) return;
        const std::uint32_t x = row.first + s;
        std::uint64_t number = 0;
        switch (feature.kind) {
          case LevelFeatureKind::values:
            number = std::bit_cast<std::uint64_t>(values(at, inside, feature, x, lane));
            break;
          case LevelFeatureKind::magnitudes: number = none ? 0 : magnitudes(at, inside, feature, x, lane); break;
          default: number = spread(at, inside, row.row, feature, x, lane); break;
        }
        X::store(out + s, lane, number);
      });
    }
  }

  constexpr double values(const LevelRow& at, bool inside, const LevelFeature& feature, std::uint32_t x,
                          std::size_t lane) const {
    const auto* const taps =
        LevelGridView::table<LevelTap<double>>(chunk_.task, chunk_.job->level.taps) + feature.first;
    double sum = 0;
    for (std::uint32_t t = 0; t < feature.count; ++t) {
      if (inside || !chunk_.job->level.linear_border) {
        sum += value_at(neighbour_place(grid_, at, inside, taps[t].in_class, taps[t].step), x, lane);
        continue;
      }
      std::uint32_t count = 1;
      for (std::uint32_t choice = 0; choice < count; ++choice) {
        const LinearPlace from = linear_place(grid_, at, taps[t], choice);
        count = from.count;
        sum += from.weight * value_at(from.place, x, lane);
      }
    }
    return sum;
  }
  constexpr std::uint32_t magnitudes(const LevelRow& at, bool inside, const LevelFeature& feature, std::uint32_t x,
                                     std::size_t lane) const {
    const auto* const taps =
        LevelGridView::table<LevelTap<std::uint32_t>>(chunk_.task, chunk_.job->level.magnitude_taps) + feature.first;
    std::uint32_t sum = 0;
    for (std::uint32_t t = 0; t < feature.count; ++t) {
      const std::int32_t place = neighbour_place(grid_, at, inside, taps[t].in_class, taps[t].step);
      sum += context_magnitude(X::load(grid_.residuals + (static_cast<std::uint32_t>(place) + x), lane));
    }
    return sum;
  }
  constexpr std::uint32_t spread(const LevelRow& at, bool inside, std::uint32_t row, const LevelFeature& feature,
                                 std::uint32_t x, std::size_t lane) const {
    const LevelSpread& spread =
        LevelGridView::table<LevelSpread>(chunk_.task, chunk_.job->level.spreads)[feature.first];
    const std::uint32_t own = view_.first + row * view_.stride + x;
    const auto code = static_cast<std::int32_t>(X::load(grid_.residuals + own, lane));
    const double predicted =
        X::load(grid_.values + own, lane) - static_cast<double>(code) * static_cast<double>(grid_.stage->quantum);
    const double first = value_at(neighbour_place(grid_, at, inside, spread.first_class, spread.first_step), x, lane);
    const double second =
        value_at(neighbour_place(grid_, at, inside, spread.second_class, spread.second_step), x, lane);
    const double difference = first + spread.second_factor * second + spread.predicted_factor * predicted;
    return capped_spread(difference, spread.scale, kMaxSpread);
  }
  [[gnu::always_inline]] constexpr double value_at(std::int32_t place, std::uint32_t x, std::size_t lane) const {
    return X::load(grid_.values + (static_cast<std::uint32_t>(place) + x), lane);
  }

  const LevelCodes& chunk_;
  const LevelGridView& grid_;
  const LevelSampling& sampling_;
  const LevelView& view_;
};

/// Codes in the order of coding and symbols of a sweep whose context weights are known, and how often each occurs.
template <class X>
constexpr void set_level_symbols(const LevelCodes& chunk, std::uint32_t number, std::uint32_t warp, std::uint32_t warps,
                                 LevelEncodeShared& shared) {
  const LevelSweep sweep = chunk.sweep(number);
  const LevelView& view = chunk.grid.stage->views[sweep.parity_class];
  const std::uint32_t columns = view.extents[kLastAxis];
  const std::uint32_t first = chunk.code_of(number, sweep);
  const std::uint32_t first_point = sweep.first_row * columns;
  const LevelPatches patches(view, sweep);
  const LevelPredictor<X, true> contexts(chunk.task, chunk.grid, sweep, shared.places[warp]);
  for (std::uint32_t p = warp; p < patches.count(); p += warps)
    contexts.run(patches.patch(p), [&](std::uint32_t point, std::uint32_t context, std::size_t lane) {
      const std::uint32_t row = point / columns;
      const std::uint32_t x = point % columns;
      const std::uint32_t to = first + point - first_point;
      const auto code =
          static_cast<std::int32_t>(X::load(chunk.grid.residuals + (view.first + row * view.stride + x), lane));
      X::store(chunk.codes + to, lane, code);
      if (chunk.job->level.masked &&
          chunk.template special<X>(chunk.row_at(sweep.parity_class, row) + x * chunk.step(), lane)) {
        X::store(chunk.symbols + to, lane, std::uint16_t{kNoSymbol});
        return;
      }
      const std::uint32_t level = context_bin(context);
      const unsigned token = token_of(magnitude_of(code));
      X::store(chunk.symbols + to, lane, static_cast<std::uint16_t>(level * kTokenStride + token));
      X::add_to(&shared.counts[level][token], lane, std::uint32_t{1});
    });
  // What lies between sweeps has no residual.
  if (warp != 0) return;
  const std::uint32_t end = first + sweep.rows * columns;
  const std::uint32_t next = chunk.begin_of(number + 1);
  X::lanes([&](std::size_t lane) {
    const std::uint32_t before = chunk.begin_of(number) + static_cast<std::uint32_t>(lane);
    if (before < first) X::store(chunk.symbols + before, lane, std::uint16_t{kNoSymbol});
    for (std::uint32_t at = end + static_cast<std::uint32_t>(lane); at < next; at += kLanes)
      X::store(chunk.symbols + at, lane, std::uint16_t{kNoSymbol});
  });
}

/// 32 points each, side by side in the order of coding: those of a warp.
struct LevelWindows {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  constexpr LevelWindows(const LevelCodes& chunk, std::uint32_t warp, std::uint32_t warps) {
    const std::uint32_t all = chunk.begin_of(chunk.sweeps()) / kLanes;
    const std::uint32_t share = (all + warps - 1) / warps;
    begin = warp * share < all ? warp * share : all;
    end = begin + share < all ? begin + share : all;
  }
};

/// Which of a warp's points miss the bound, and how many.
template <class X>
constexpr void find_level_exceptions(const LevelCodes& chunk, std::uint32_t warp, std::uint32_t warps,
                                     LevelEncodeShared& shared) {
  const LevelEncodeJob& job = *chunk.job;
  const LevelStage& stage = *chunk.grid.stage;
  const LevelWindows windows(chunk, warp, warps);
  std::uint32_t found = 0;
  std::uint32_t number = windows.begin * kLanes / job.first[stage.class_count] * stage.class_count;
  for (std::uint32_t w = windows.begin; w < windows.end; ++w) {
    while (w * kLanes >= chunk.begin_of(number + 1)) ++number;
    const LevelSweep sweep = chunk.sweep(number);
    const LevelView& view = stage.views[sweep.parity_class];
    const std::uint32_t columns = view.extents[kLastAxis];
    const std::uint32_t first = chunk.code_of(number, sweep);
    typename X::template vec<bool> missed;
    X::lanes([&](std::size_t lane) {
      const std::uint32_t code = w * kLanes + static_cast<std::uint32_t>(lane);
      X::set(missed, lane, false);
      if (code < first || (code - first) / columns >= sweep.rows) return;
      const std::uint32_t row = sweep.first_row + (code - first) / columns;
      const std::uint32_t x = (code - first) % columns;
      const std::uint64_t at = chunk.row_at(sweep.parity_class, row) + x * chunk.step();
      if (job.level.masked && chunk.template special<X>(at, lane)) return;
      const double value = X::load(chunk.grid.values + (view.first + row * view.stride + x), lane);
      const double back = value * job.level.unit + job.level.base;
      const std::uint64_t bits = chunk.template element<X>(at, lane);
      X::set(missed, lane, with_number_element(job.level.element, [&](auto type) -> bool {
               using Type = decltype(type);
               return !keeps_bound<Type>(static_cast<typename Type::Bits>(bits), Type::bits(back), job.bound);
             }));
    });
    const std::uint32_t flags = X::ballot(missed);
    X::lanes([&](std::size_t lane) {
      if (lane == 0) X::store(chunk.missed + w, lane, flags);
    });
    found += popcount(flags);
  }
  X::lanes([&](std::size_t lane) {
    if (lane == 0) X::store(shared.exceptions + warp, lane, found);
  });
}

/// Their numbers in the order of coding, as far as there is room.
template <class X>
constexpr void list_level_exceptions(const LevelCodes& chunk, std::uint32_t warp, std::uint32_t warps,
                                     const LevelEncodeShared& shared) {
  if (X::load_same(shared.exceptions + warp) == 0) return;
  const LevelWindows windows(chunk, warp, warps);
  std::uint32_t at = 0;
  for (std::uint32_t w = 0; w < warp; ++w) at += X::load_same(shared.exceptions + w);
  for (std::uint32_t w = windows.begin; w < windows.end; ++w) {
    const std::uint32_t flags = X::load_same(chunk.missed + w);
    X::lanes([&](std::size_t lane) {
      if ((flags >> lane & 1) == 0) return;
      const std::uint32_t to = at + popcount(flags & ((1u << lane) - 1));
      if (to < chunk.job->exceptions)
        X::store(chunk.exception_list + to, lane, w * kLanes + static_cast<std::uint32_t>(lane));
    });
    at += popcount(flags);
  }
}

template <class X>
constexpr void clear_level_shared(std::uint32_t warp, std::uint32_t warps, LevelEncodeShared& shared) {
  clear_symbol_counts<X>(warp, warps, shared);
  X::lanes([&](std::size_t lane) {
    if (lane != 0) return;
    X::store(shared.out_of_range + warp, lane, std::uint32_t{0});
    X::store(shared.exceptions + warp, lane, std::uint32_t{0});
  });
}

/// One step of a chunk.
template <class X, class Block>
constexpr void encode_level_chunk(Block& block, const EncodeTask& task, LevelEncodeShared& shared) {
  const LevelCodes chunk(task);
  const LevelStage& stage = *chunk.grid.stage;
  const auto finish_rows = [&](std::uint32_t parity_class, std::uint32_t first, std::uint32_t rows) {
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      finish_level_rows<X>(chunk.grid, parity_class, first, rows, warp, warps);
    });
  };
  const auto code = [&](const LevelSweep& sweep) {
    const LevelPatches patches(stage.views[sweep.parity_class], sweep);
    block.all([&](std::uint32_t warp, std::uint32_t warps) {
      const LevelPredictor<X> predictor(chunk.task, chunk.grid, sweep, shared.places[warp]);
      for (std::uint32_t p = warp; p < patches.count(); p += warps) predictor.run(patches.patch(p));
    });
    block.all(
        [&](std::uint32_t warp, std::uint32_t warps) { code_level_points<X>(chunk, sweep, warp, warps, shared); });
    finish_rows(sweep.parity_class, sweep.first_row, sweep.rows);
  };
  block.all([&](std::uint32_t warp, std::uint32_t warps) { clear_level_shared<X>(warp, warps, shared); });
  switch (chunk.job->step) {
    case LevelEncodeStep::open:
      block.all([&](std::uint32_t warp, std::uint32_t warps) { take_coarser_points<X>(chunk, warp, warps); });
      finish_rows(0, 0, stage.views[0].rows);
      break;
    case LevelEncodeStep::code:
    case LevelEncodeStep::planes: {
      const bool all = chunk.job->step == LevelEncodeStep::planes;
      const std::uint32_t end = all ? chunk.sweeps() : chunk.job->coded + 1;
      for (std::uint32_t n = all ? 0 : chunk.job->coded; n < end; ++n) code(chunk.sweep(n));
      break;
    }
    case LevelEncodeStep::round:
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        take_coarser_points<X>(chunk, warp, warps);
        for (std::uint32_t i = 0; i < stage.class_count; ++i)
          round_level_points<X>(chunk, stage.classes[i], warp, warps, shared);
      });
      finish_rows(0, 0, stage.views[0].rows);
      for (std::uint32_t i = 0; i < stage.class_count; ++i)
        finish_rows(stage.classes[i], 0, stage.views[stage.classes[i]].rows);
      break;
    default:
      block.all([&](std::uint32_t warp, std::uint32_t warps) {
        for (std::uint32_t n = 0; n < chunk.sweeps(); ++n) set_level_symbols<X>(chunk, n, warp, warps, shared);
        find_level_exceptions<X>(chunk, warp, warps, shared);
      });
      block.all([&](std::uint32_t warp, std::uint32_t warps) { list_level_exceptions<X>(chunk, warp, warps, shared); });
      break;
  }
  block.all([&](std::uint32_t warp, std::uint32_t warps) {
    const auto* const samplings = LevelGridView::table<LevelSampling>(chunk.task, chunk.job->samplings);
    for (std::uint32_t i = 0; i < chunk.job->sampling_count; ++i) LevelSampler<X>(chunk, samplings[i]).run(warp, warps);
    store_encode_result<X>(*static_cast<RasterEncodeResult*>(task.result), false, chunk.job->exceptions, warp, warps,
                           shared);
  });
}

}  // namespace quern::kernels
