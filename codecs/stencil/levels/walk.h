// The order in which a level's points are coded, and the predictions of rows of them: what encoder and decoder share.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "codecs/stencil/edges/edge_rows.h"
#include "codecs/stencil/levels/context.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/raster/planes.h"
#include "kernels/stencil/cpu/stencil.h"

namespace quern::codec::stencil {

/// Rows of a class at the open level that follow each other along the axis before the last.
struct CodedRun {
  ContextRow first;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t code = 0;    ///< number of its first point in the order of coding, from the level's first
  std::size_t linear = 0;  ///< number of its first point in its class
};

/// One of them.
struct CodedRow {
  ContextRow place;
  std::size_t columns = 0;
  std::size_t code = 0;
};

/// Calls visit(CodedRun) for the runs of the open level in the order of coding: plane after plane of a sequential
/// axis but those that are given, within it class after class. Ends early when visit returns false; false then.
template <class Grid, class Visit>
bool for_coded_runs(const Grid& grid, const Visit& visit) {
  const LevelAxes& axes = grid.axes();
  const CodedClasses classes(axes, grid.level());
  CodedRun run;
  run.first.level = grid.level();
  for (std::size_t plane = axes.given; plane < axes.planes(); ++plane) {
    run.first.later = plane > 0;
    for (std::size_t i = 0; i < classes.count; ++i) {
      const auto& view = grid.view(classes.list[i]);
      run.first.parity_class = classes.list[i];
      run.columns = view.extents[axes.rank - 1];
      run.rows = grid.run_rows(classes.list[i]);
      const std::size_t rows = view.rows / axes.planes();
      for (std::size_t r = 0; r < rows; r += run.rows) {
        const std::size_t row = plane * rows + r;
        run.linear = (row - axes.given * rows) * run.columns;
        run.first.index = grid.index_of(classes.list[i], row);
        if (!visit(static_cast<const CodedRun&>(run))) return false;
        run.code += run.rows * run.columns;
      }
    }
  }
  return true;
}

/// Calls visit(CodedRow, number in the run) for the rows of a run.
template <class Grid, class Visit>
void for_rows(const Grid& grid, const CodedRun& run, const Visit& visit) {
  CodedRow row{run.first, run.columns, run.code};
  for (std::size_t r = 0; r < run.rows; ++r) {
    if (r > 0) ++row.place.index[grid.run_axis()];
    visit(static_cast<const CodedRow&>(row), r);
    row.code += run.columns;
  }
}

/// Predictions and contexts of the rows of a run of the open level.
template <class Value>
class RowPredictorOf {
 public:
  using LevelGrid = LevelGridOf<Value>;

  /// `columns`: of the longest row.
  RowPredictorOf(Arena& arena, std::size_t columns)
      : plans_(arena.take<Plan>(2 * kParityClasses)),
        values_(arena.take<ValueSourcesOf<Value>>(1)),
        contexts_(arena.take<ContextSources<Value>>(1)),
        edges_(arena, columns) {}

  /// To be called when a level is open, and when its predictors or context weights are no longer the same.
  void start_level(const LevelGrid& grid) {
    for (const bool later : {false, true})
      for (std::size_t c = 0; c < kParityClasses && (!later || grid.axes().planes() > 1); ++c)
        if (grid.axes().exists(c, grid.level())) {
          Plan& plan = this->plan(later, c);
          plan.list = groups_of(grid.axes(), grid.level(), c, later);
          plan.has_taps = false;
          plan.has_contexts = false;
        }
  }
  /// The predictor of a class has changed.
  void forget(bool later, std::size_t parity_class) { plan(later, parity_class).has_taps = false; }
  const GroupList& list(bool later, std::size_t parity_class) { return plan(later, parity_class).list; }

  /// Room that nobody needs between runs.
  EdgeRows<Value>& edges() { return edges_; }

  /// Finds what the rows of a run are predicted from.
  void open_values(const LevelGrid& grid, const CodedRun& run, const LevelsModel& model) {
    const ContextRow& first = run.first;
    Plan& plan = this->plan(first.later, first.parity_class);
    const Predictor& predictor = model.predictor(first.level, first.later, first.parity_class);
    const GroupWeights& weights = predictor.weights;
    const bool inside = grid.inside(first.index);
    if (!plan.has_taps) {
      plan.predicting = groups_of_kind(plan.list, predictor.kind);
      grid.plan_values(first.parity_class, plan.predicting, weights, plan.taps);
      plan.has_taps = true;
    }
    if (inside) {
      grid.planned_sources(first.index, plan.taps, *values_);
    } else {
      grid.value_sources(first.parity_class, first.index, plan.predicting, weights, *values_);
    }
    points_ = values_->count;
    edges_.open(grid, first.parity_class, first.index, plan.predicting, &weights);
    for (std::size_t i = 0; i < edges_.count(); ++i)
      values_->add(nullptr, static_cast<double>(weights[edges_.group(i)]));
    sums_fit_ = false;
    if (grid.small()) {
      double magnitudes = 0;
      for (std::size_t t = 0; t < values_->count; ++t) magnitudes += std::fabs(values_->weights[t]);
      sums_fit_ = grid.small().sums_fit(magnitudes, model.format.weight_bits);
    }
    view_ = {};
    view_.taps = values_->rows.data();
    view_.tap_weights = values_->weights.data();
    view_.tap_count = values_->count;
    view_.pair_count = values_->pairs;
    view_.weight_bits = model.format.weight_bits;
    view_.exact = inside;  // magnitudes of stored weights sum to at most 2^18
    has_contexts_ = false;
  }
  /// The same for their contexts; after open_values, if both are wanted.
  void open_contexts(const LevelGrid& grid, const CodedRun& run, const LevelsModel& model) {
    const ContextRow& first = run.first;
    Plan& plan = this->plan(first.later, first.parity_class);
    if (!plan.has_contexts)
      plan.contexts = ContextPlan(grid, first, context_weights(model, first.level, first.later, first.parity_class));
    plan.has_contexts = true;
    find_context_sources(grid, first, plan.contexts, model.format.fraction_bits, *contexts_);
    view_.constant = plan.contexts.weights.constant;
    view_.magnitudes = contexts_->magnitudes.rows.data();
    view_.magnitude_weights = contexts_->magnitudes.weights.data();
    view_.spread_count = contexts_->spread_count;
    view_.most_spread = kMaxSpread;
    view_.spread_bits = kSpreadBits;
    rows_ = run.rows;
    has_contexts_ = true;
  }
  /// The same where the row, of so many columns and so far behind the run's first one, is to be predicted; after
  /// open_values.
  const kernels::RowSourcesView<Value>& predicted_row(std::size_t number, std::size_t begin, std::size_t columns,
                                                      const kernels::EdgeKernels& kernels) {
    edges_.make(begin, columns, kernels);
    // Taps begin with the run's first row.
    for (std::size_t i = 0; i < edges_.count(); ++i) values_->rows[points_ + i] = edges_.row(i) - begin;
    return row(number);
  }
  /// Whether kernels of small values may predict the rows of the run, as long as the values are small.
  bool small(const LevelGrid& grid) const { return sums_fit_ && grid.small(); }
  /// Sources of a row of the run, by its number in it.
  const kernels::RowSourcesView<Value>& row(std::size_t number) {
    if (!has_contexts_) return view_;
    view_.magnitude_count = number == 0 ? contexts_->first_row : contexts_->magnitudes.count;
    view_.spreads = number + 1 == rows_ ? contexts_->last_row.data() : contexts_->spreads.data();
    return view_;
  }

 private:
  struct Plan {
    GroupList list;
    GroupList predicting;  ///< the same with a network's, where the predictor has one
    PlannedTaps<double> taps;
    ContextPlan contexts;
    bool has_taps = false;
    bool has_contexts = false;
  };
  Plan& plan(bool later, std::size_t parity_class) { return plans_[(later ? kParityClasses : 0) + parity_class]; }

  Plan* plans_;
  ValueSourcesOf<Value>* values_;
  ContextSources<Value>* contexts_;
  EdgeRows<Value> edges_;
  std::size_t points_ = 0;  ///< taps of a row that are points; the others are made from those
  kernels::RowSourcesView<Value> view_;
  bool sums_fit_ = false;  ///< of the run, over values that are small
  std::size_t rows_ = 0;
  bool has_contexts_ = false;
};
using RowPredictor = RowPredictorOf<double>;

}  // namespace quern::codec::stencil
