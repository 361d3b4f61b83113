// A chunk in levels, decoded by the warps of a CTA. A class of points (in one plane, if planes come one after another)
// takes three steps: all warps predict its points and sum up their contexts from points that are known; one warp takes
// its residuals, a lane of the stream to each of its lanes; all warps set the margins of its rows. Numbers are those of
// codecs/stencil/levels_decode.cpp: sums of products in binary64 in the same order, so that even bytes that no encoder
// writes give the same values.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/core/bits.h"
#include "kernels/core/lane_level_grid.h"
#include "kernels/core/lane_level_rans.h"
#include "kernels/core/level_program.h"

namespace quern::kernels {

/// The points of a class in one plane.
struct LevelSweep {
  std::uint32_t parity_class = 0;
  std::uint32_t first_row = 0;
  std::uint32_t rows = 0;
  const ClassPlan* plan = nullptr;
};

/// Predicts a block of a row: the prediction's bits go where the values will be, the context sum where the magnitudes
/// will be.
template <class X>
constexpr void predict_level_block(const ProgramTask& task, const LevelGridView& grid, const LevelSweep& sweep,
                                   std::uint32_t row, std::uint32_t begin) {
  const LevelProgram& program = *grid.program;
  const LevelView& view = grid.stage->views[sweep.parity_class];
  const ClassPlan& plan = *sweep.plan;
  const LevelRow at(view, row);
  const bool inside = row_is_inside(grid, at);
  const std::uint32_t columns = view.extents[kLastAxis];
  const std::uint32_t own = view.first + row * view.stride;
  const auto* const taps = LevelGridView::table<LevelTap<double>>(task, program.taps) + plan.taps;
  const auto* const magnitude_taps =
      LevelGridView::table<LevelTap<std::uint32_t>>(task, program.magnitude_taps) + plan.magnitude_taps;
  const auto* const spreads = LevelGridView::table<LevelSpread>(task, program.spreads) + plan.spreads;
  X::lanes([&](std::size_t lane) {
    // Lanes beyond the row's end take its last point and leave it alone.
    std::uint32_t x[kLanePoints] = {};
    double sums[kLanePoints] = {};
    std::uint32_t contexts[kLanePoints] = {};
    unroll<kLanePoints>([&](auto k) {
      const std::uint32_t column = begin + static_cast<std::uint32_t>(lane + k * kLanes);
      x[k] = column < columns ? column : columns - 1;
      contexts[k] = plan.constant;
    });
    const auto add = [&](std::int32_t place, double weight) __attribute__((always_inline)) {
      const double* const from = grid.values + place;
      unroll<kLanePoints>([&](auto k) { sums[k] += weight * X::load(from + x[k], lane); });
    };
    rolled(0, plan.tap_count, [&](unsigned t) {
      const LevelTap<double>& tap = taps[t];
      if (inside || !program.linear_border) {
        add(neighbour_place(grid, at, inside, tap.in_class, tap.step), tap.weight);
      } else {
        for_linear_places(grid, at, tap, add);
      }
    });
    rolled(0, plan.magnitude_tap_count, [&](unsigned t) {
      const LevelTap<std::uint32_t>& tap = magnitude_taps[t];
      const std::uint32_t* const from = grid.magnitudes + neighbour_place(grid, at, inside, tap.in_class, tap.step);
      unroll<kLanePoints>([&](auto k) { contexts[k] += tap.weight * X::load(from + x[k], lane); });
    });
    constexpr double kMagic = 0x1.8p52;  // puts integers below 2^51 into the low bits
    std::int64_t predicted[kLanePoints] = {};
    unroll<kLanePoints>([&](auto k) {
      const std::uint64_t sum = std::bit_cast<std::uint64_t>(sums[k] + kMagic) - std::bit_cast<std::uint64_t>(kMagic);
      const std::uint64_t half = std::uint64_t{1} << (program.weight_bits - 1);
      predicted[k] = static_cast<std::int64_t>(sum + half) >> program.weight_bits;
    });
    if (plan.spread_count != 0) {
      std::uint32_t spread_sums[kLanePoints] = {};
      rolled(0, plan.spread_count, [&](unsigned s) {
        const LevelSpread& spread = spreads[s];
        const double* const first =
            grid.values + neighbour_place(grid, at, inside, spread.first_class, spread.first_step);
        const double* const second =
            grid.values + neighbour_place(grid, at, inside, spread.second_class, spread.second_step);
        unroll<kLanePoints>([&](auto k) {
          const double difference = X::load(first + x[k], lane) + spread.second_factor * X::load(second + x[k], lane) +
                                    spread.predicted_factor * static_cast<double>(predicted[k]);
          const double scaled = (difference < 0 ? -difference : difference) * spread.scale;
          const auto most = static_cast<double>(std::uint32_t{kMostSpread});
          const auto counted = static_cast<std::uint32_t>(static_cast<std::int32_t>(scaled < most ? scaled : most));
          spread_sums[k] += spread.weight * counted;
        });
      });
      unroll<kLanePoints>([&](auto k) { contexts[k] += spread_sums[k] >> kSpreadFractionBits; });
    }
    unroll<kLanePoints>([&](auto k) {
      if (begin + lane + k * kLanes >= columns) return;
      X::store(grid.values + own + x[k], lane, std::bit_cast<double>(predicted[k]));
      X::store(grid.magnitudes + own + x[k], lane, contexts[k]);
    });
  });
}

template <class X>
constexpr void predict_level_rows(const ProgramTask& task, const LevelGridView& grid, const LevelSweep& sweep,
                                  std::uint32_t warp, std::uint32_t warps) {
  const std::uint32_t columns = grid.stage->views[sweep.parity_class].extents[kLastAxis];
  const std::uint32_t blocks = (columns + kBlockPoints - 1) / kBlockPoints;
  for (std::uint32_t t = warp; t < sweep.rows * blocks; t += warps)
    predict_level_block<X>(task, grid, sweep, sweep.first_row + t / blocks, t % blocks * kBlockPoints);
}

/// Takes the residuals of a sweep's points. Called by one warp.
template <class X>
class LevelResidualTaker {
 public:
  constexpr LevelResidualTaker(const ProgramTask& task, const LevelGridView& grid, const LevelSweep& sweep,
                               const LevelTables& tables, std::uint32_t mask)
      : task_(task),
        grid_(grid),
        sweep_(sweep),
        view_(grid.stage->views[sweep.parity_class]),
        tables_(tables),
        mask_(mask),
        columns_(view_.extents[kLastAxis]) {
    const std::uint32_t points = grid.stage->points[kLastAxis];
    const std::uint32_t parity = class_parity(sweep.parity_class, kLastAxis);
    left_ = mirrored_index(points, parity, -1);
    right_ = mirrored_index(points, parity, static_cast<std::int32_t>(columns_));
  }

  constexpr void run(LevelLanes<X>& lanes) {
    const std::uint32_t begin = sweep_.first_row * columns_;
    const std::uint32_t end = begin + sweep_.rows * columns_;
    // Points that one step takes together must not need each other: of rows that are short, one at a time.
    if (!sweep_.plan->looks_at_itself() || columns_ > mask_ + 1) return take(begin, end, lanes);
    for (std::uint32_t at = begin; at < end; at += columns_) take(at, at + columns_, lanes);
  }

 private:
  template <class T>
  using vec = typename X::template vec<T>;

  /// What is known of a point before the points before it are.
  struct Ahead {
    vec<std::uint32_t> place;
    vec<std::uint64_t> predicted;
    vec<std::uint32_t> context;
    vec<bool> special;
  };

  /// Points number begin .. end-1 of the class, a lane of the stream each.
  constexpr void take(std::uint32_t begin, std::uint32_t end, LevelLanes<X>& lanes) {
    vec<std::uint32_t> row;
    vec<std::uint32_t> x;
    const std::uint32_t start = begin & ~mask_;
    X::lanes([&](std::size_t lane) {
      // Lanes before the first point begin at it.
      const std::uint32_t number = start + static_cast<std::uint32_t>(lane);
      const std::uint32_t first = number < begin ? begin : number;
      X::set(row, lane, first / columns_);
      X::set(x, lane, first % columns_);
    });
    Ahead ahead;
    look(start, begin, end, row, x, ahead);
    for (std::uint32_t step = start; step < end; step += mask_ + 1) {
      const Ahead now = ahead;
      const vec<std::uint32_t> row_now = row;
      const vec<std::uint32_t> x_now = x;
      if (step + mask_ + 1 < end) {
        X::lanes([&](std::size_t lane) {
          const std::uint32_t number = step + mask_ + 1 + static_cast<std::uint32_t>(lane);
          if (lane > mask_ || number < begin) return;
          std::uint32_t column = X::get(x, lane);
          std::uint32_t r = X::get(row, lane);
          // A lane that waited at the first point goes on from where it would have been.
          column += number - mask_ - 1 < begin ? number - begin : mask_ + 1;
          while (column >= columns_) {
            column -= columns_;
            ++r;
          }
          X::set(x, lane, column);
          X::set(row, lane, r);
        });
        look(step + mask_ + 1, begin, end, row, x, ahead);
      }
      X::lanes([&](std::size_t lane) {
        const std::uint32_t number = step + static_cast<std::uint32_t>(lane);
        if (lane > mask_ || number < begin || number >= end) return;
        decode(now, X::get(row_now, lane), X::get(x_now, lane), lanes, lane);
      });
      X::sync();
    }
  }

  constexpr void look(std::uint32_t step, std::uint32_t begin, std::uint32_t end, const vec<std::uint32_t>& row,
                      const vec<std::uint32_t>& x, Ahead& ahead) const {
    X::lanes([&](std::size_t lane) {
      const std::uint32_t number = step + static_cast<std::uint32_t>(lane);
      std::uint32_t place = 0;
      std::uint64_t predicted = 0;
      std::uint32_t context = 0;
      bool special = false;
      if (lane <= mask_ && number >= begin && number < end) {
        const std::uint32_t r = X::get(row, lane);
        place = view_.first + r * view_.stride + X::get(x, lane);
        predicted = std::bit_cast<std::uint64_t>(X::load(grid_.values + place, lane));
        context = X::load(grid_.magnitudes + place, lane);
        special = grid_.program->masked && is_special(r, X::get(x, lane), lane);
      }
      X::set(ahead.place, lane, place);
      X::set(ahead.predicted, lane, predicted);
      X::set(ahead.context, lane, context);
      X::set(ahead.special, lane, special);
    });
  }

  constexpr bool is_special(std::uint32_t row, std::uint32_t x, std::size_t lane) const {
    const LevelRow at(view_, row);
    const std::uint32_t index[kLevelAxes] = {at.index[0], at.index[1], at.index[2], x};
    std::uint64_t offset = 0;
    unroll<kLevelAxes>([&](auto a) {
      constexpr auto kAxis = static_cast<std::uint32_t>(decltype(a)::value);
      const std::uint64_t place = grid_.program->hierarchical(kAxis)
                                      ? (2 * std::uint64_t{index[kAxis]} + class_parity(sweep_.parity_class, kAxis))
                                            << grid_.level
                                      : index[kAxis];
      offset += place * grid_.program->special_strides[kAxis];
    });
    return X::load(task_.special + offset, lane) != 0;
  }

  /// The part of the context that the class itself gives.
  [[gnu::always_inline]] constexpr std::uint32_t own_context(std::uint32_t row, std::uint32_t x,
                                                             std::size_t lane) const {
    const ClassPlan& plan = *sweep_.plan;
    const std::uint32_t rows = view_.extents[2];
    std::uint32_t sum = 0;
    if ((plan.above | plan.sides) != 0 && row % rows != 0) {
      const std::uint32_t* const before = grid_.magnitudes + (view_.first + (row - 1) * view_.stride);
      const std::uint32_t left = x == 0 ? static_cast<std::uint32_t>(left_) : x - 1;
      const std::uint32_t right = x + 1 == columns_ ? static_cast<std::uint32_t>(right_) : x + 1;
      sum += plan.above * X::load(before + x, lane);
      if (plan.sides != 0) sum += plan.sides * (X::load(before + left, lane) + X::load(before + right, lane));
    }
    if (plan.back != 0 && row / rows % view_.extents[1] != 0)
      sum += plan.back * X::load(grid_.magnitudes + (view_.first + (row - rows) * view_.stride) + x, lane);
    return sum;
  }

  [[gnu::always_inline]] constexpr void decode(const Ahead& now, std::uint32_t row, std::uint32_t x,
                                               LevelLanes<X>& lanes, std::size_t lane) const {
    const LevelProgram& program = *grid_.program;
    auto value = static_cast<std::int64_t>(X::get(now.predicted, lane));
    std::uint32_t magnitude = 0;
    if (X::get(now.special, lane)) {
      value = value < program.low ? program.low : value > program.high ? program.high : value;
    } else {
      std::uint32_t context = X::get(now.context, lane);
      if (sweep_.plan->looks_at_itself()) context += own_context(row, x, lane);
      const LevelTokens& table = tables_.tokens[X::load(&tables_.serving[context_level(context)], lane)];
      const std::int32_t residual = lanes.take(table, lane);
      value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) +
                                        static_cast<std::uint64_t>(static_cast<std::int64_t>(residual)) *
                                            static_cast<std::uint64_t>(grid_.stage->quantum));
      const auto size = static_cast<std::uint32_t>(residual < 0 ? -residual : residual);
      magnitude = size < kMostContextMagnitude ? size : std::uint32_t{kMostContextMagnitude};
    }
    const std::uint32_t place = X::get(now.place, lane);
    X::store(grid_.magnitudes + place, lane, magnitude);
    // Encoders keep values below 2^51; others are cut so that binary64 holds them.
    X::store(grid_.values + place, lane,
             static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(value) << 11) >> 11));
  }

  const ProgramTask& task_;
  const LevelGridView& grid_;
  const LevelSweep& sweep_;
  const LevelView& view_;
  const LevelTables& tables_;
  std::uint32_t mask_;
  std::uint32_t columns_;
  std::int32_t left_ = 0;
  std::int32_t right_ = 0;
};

/// Decodes a chunk and returns, in the first warp, whether its lanes ended where they should. A team is the warps of a
/// CTA: all(f) calls f(warp, warps) in each of them, first(f) calls f in the first one, and both are over for all of
/// them before either returns.
template <class X, class Team>
constexpr bool decode_level_chunk(Team& team, const ProgramTask& task, LevelTables& tables) {
  const auto& program = *reinterpret_cast<const LevelProgram*>(task.program);
  team.all([&](std::uint32_t warp, std::uint32_t warps) {
    fill_level_tables<X>(program, LevelGridView::table<LevelStarts>(task, program.starts), warp, warps, tables);
  });
  LevelLanes<X> lanes;
  bool good = true;
  for (std::uint32_t level = program.top + 1u; level-- > 0;) {
    const LevelGridView grid(task, level);
    const LevelStage& stage = *grid.stage;
    const LevelSection& section = LevelGridView::table<LevelSection>(task, program.sections)[stage.section];
    if (stage.opens_section)
      team.first([&] { lanes.open(section, LevelGridView::table<std::uint8_t>(task, program.words)); });
    if (level < program.top) {
      const LevelGridView above(task, level + 1);
      team.all([&](std::uint32_t warp, std::uint32_t warps) { take_level_above<X>(grid, above, warp, warps); });
      team.all([&](std::uint32_t warp, std::uint32_t warps) {
        finish_level_rows<X>(grid, 0, 0, stage.views[0].rows, warp, warps);
      });
    }
    for (std::uint32_t plane = 0; plane < program.planes(); ++plane) {
      for (std::uint32_t i = 0; i < stage.class_count; ++i) {
        LevelSweep sweep;
        sweep.parity_class = stage.classes[i];
        sweep.rows = stage.views[sweep.parity_class].rows / program.planes();
        sweep.first_row = plane * sweep.rows;
        sweep.plan = LevelGridView::table<ClassPlan>(task, program.plans) + stage.plans[plane > 0 ? 1 : 0] + i;
        team.all(
            [&](std::uint32_t warp, std::uint32_t warps) { predict_level_rows<X>(task, grid, sweep, warp, warps); });
        team.first([&] { LevelResidualTaker<X>(task, grid, sweep, tables, section.mask).run(lanes); });
        team.all([&](std::uint32_t warp, std::uint32_t warps) {
          finish_level_rows<X>(grid, sweep.parity_class, sweep.first_row, sweep.rows, warp, warps);
        });
      }
    }
    if (stage.ends_section) team.first([&] { good = lanes.finished() && good; });
  }
  team.all([&](std::uint32_t warp, std::uint32_t warps) { store_level_elements<X>(task, warp, warps); });
  team.all([&](std::uint32_t warp, std::uint32_t warps) { store_level_exceptions<X>(task, warp, warps); });
  return good;
}

}  // namespace quern::kernels
