// The order in which a level's points are coded, and the predictions of one row of them: what encoder and decoder
// share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/stencil/levels_context.h"
#include "codecs/stencil/levels_grid.h"
#include "codecs/stencil/levels_model.h"
#include "codecs/stencil/planes.h"
#include "kernels/cpu/stencil.h"

namespace quern::codec::stencil {

/// One row of a class at the open level.
struct CodedRow {
  ContextRow place;
  std::size_t row = 0;  ///< of the class
  std::size_t columns = 0;
  std::size_t code = 0;    ///< number of its first point in the order of coding, from the level's first
  std::size_t linear = 0;  ///< number of its first point in its class
};

/// Calls visit(CodedRow) for the rows of the open level in the order of coding: plane after plane of a sequential
/// axis, within it class after class. Ends early when visit returns false; false then.
template <class Visit>
bool for_coded_rows(const LevelGrid& grid, const Visit& visit) {
  const LevelAxes& axes = grid.axes();
  const CodedClasses classes(axes, grid.level());
  CodedRow row;
  row.place.level = grid.level();
  for (std::size_t plane = 0; plane < axes.planes(); ++plane) {
    row.place.later = plane > 0;
    for (std::size_t i = 0; i < classes.count; ++i) {
      const LevelGrid::View& view = grid.view(classes.list[i]);
      row.place.parity_class = classes.list[i];
      row.columns = view.extents[axes.rank - 1];
      const std::size_t rows = view.rows / axes.planes();
      for (std::size_t r = 0; r < rows; ++r) {
        row.row = plane * rows + r;
        row.linear = row.row * row.columns;
        row.place.index = grid.index_of(classes.list[i], row.row);
        if (!visit(static_cast<const CodedRow&>(row))) return false;
        row.code += row.columns;
      }
    }
  }
  return true;
}

/// Predictions and contexts of rows of the open level.
class RowPredictor {
 public:
  RowPredictor(Carver& carver, const LevelAxes& axes)
      : plans_(carver.take<Plan>(2 * kParityClasses)), sources_(carver.take<ValueSources>(1)) {
    const std::size_t columns = axes.extents[axes.rank - 1];
    sums_ = carver.take<std::int64_t>(row_room(columns));
    numbers_ = carver.take<double>(row_room(columns));
    room_ = carver.take<ContextRoom>(1);
    spread_ = carver.take<std::uint32_t>(row_room(columns));
    contexts_ = carver.take<std::uint32_t>(row_room(columns));
  }

  /// To be called when a level is open, and when its predictors or context weights are no longer the same.
  void start_level(const LevelGrid& grid) {
    room_->spread = spread_;
    room_->sums = contexts_;
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

  std::int64_t* predict(const LevelGrid& grid, const ContextRow& row, std::size_t columns, const LevelsModel& model,
                        const kernels::StencilKernels& kernels) {
    find_sources(grid, row, model);
    kernels.tap_sums(sources_->rows.data(), sources_->weights.data(), sources_->count, columns, sums_);
    kernels.scale_down(sums_, columns, model.values.weight_bits, numbers_);
    return sums_;
  }
  /// What predict gave, in binary64.
  const double* numbers() const { return numbers_; }
  /// Predicts a row and codes it.
  void code(const LevelGrid& grid, const ContextRow& row, std::size_t columns, const LevelsModel& model,
            const kernels::StencilKernels& kernels, const kernels::CodedRowBuffers& to) {
    find_sources(grid, row, model);
    kernels.code_row(sources_->rows.data(), sources_->weights.data(), sources_->count, columns, to);
  }
  const std::uint32_t* contexts(const LevelGrid& grid, const ContextRow& row, const double* predicted,
                                const LevelsModel& model, const kernels::StencilKernels& kernels) {
    Plan& plan = this->plan(row.later, row.parity_class);
    if (!plan.has_contexts)
      plan.contexts = ContextPlan(grid, row, context_weights(model, row.level, row.later, row.parity_class));
    plan.has_contexts = true;
    context_sums(grid, row, plan.contexts, predicted, model.values.fraction_bits, kernels, *room_);
    return room_->sums;
  }

 private:
  struct Plan {
    GroupList list;
    PlannedTaps<double> taps;
    ContextPlan contexts;
    bool has_taps = false;
    bool has_contexts = false;
  };
  void find_sources(const LevelGrid& grid, const ContextRow& row, const LevelsModel& model) {
    Plan& plan = this->plan(row.later, row.parity_class);
    const GroupWeights& weights = model.predictor(row.level, row.later, row.parity_class).weights;
    if (grid.inside(row.index)) {
      if (!plan.has_taps) grid.plan_values(row.parity_class, plan.list, weights, plan.taps);
      plan.has_taps = true;
      grid.planned_sources(row.index, plan.taps, *sources_);
    } else {
      grid.value_sources(row.parity_class, row.index, plan.list, weights, *sources_);
    }
  }
  Plan& plan(bool later, std::size_t parity_class) { return plans_[(later ? kParityClasses : 0) + parity_class]; }

  Plan* plans_;
  ValueSources* sources_;
  std::int64_t* sums_ = nullptr;
  double* numbers_ = nullptr;
  ContextRoom* room_ = nullptr;
  std::uint32_t* spread_ = nullptr;
  std::uint32_t* contexts_ = nullptr;
};

}  // namespace quern::codec::stencil
