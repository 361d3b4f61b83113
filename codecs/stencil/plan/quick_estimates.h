// Layouts on a small box, estimated by order-0 entropies: which of them are worth more.
#pragma once

#include <cstdint>

#include <quern/codec.h>
#include <quern/memory.h>
#include <quern/status.h>

#include "codecs/stencil/plan/plan.h"
#include "codecs/stencil/plan/trial.h"

namespace quern::codec::stencil {

/// Axes as they are; where there are more than four, the first ones merged. (Four are three of the grid, one split.)
Layout own_axes(const Shape& shape);

/// Whether a layout has few enough chunks.
bool few_chunks(const PlanRequest& request, const Layout& layout);
/// The same, and rows that are worth it.
bool possible(const PlanRequest& request, const Layout& layout);

/// The transform is worth a trial where its coefficients take no more than so many hundredths of what others take by
/// order-0 entropy: contexts gain it less than other layouts.
std::uint64_t plain_percent(const PlanRequest& request);

/// Estimates every possible layout on a small box, and says which of them are worth a trial.
class QuickEstimates {
 public:
  /// `all`: also of layouts that seldom win, for a choice that measures.
  QuickEstimates(const PlanRequest& request, const LayoutChoice& choice, const Stage& stage, bool all = false);

  Status run();

  const Trial& best() const { return trials_[best_of(trials_)]; }
  /// The best one, and those that contexts may make better than it.
  Vector<Trial> near_best() const;
  /// For a choice that measures: all in levels and under the transform, and the best ones in raster order.
  Vector<Trial> possible_winners() const;

 private:
  bool bits_above(std::uint64_t most) const { return best().bits > best().elems * most; }
  bool boxes_show_levels() const;
  bool may_be_best(const Trial& trial) const;
  std::uint64_t margin_over_levels(const Trial& levels) const;
  Status run_new();
  void add_raster();
  void add_levels();
  void add_levels_of(Layout layout);
  void add_wavelet();
  Vector<std::uint64_t> level_extents(Layout layout) const;

  const PlanRequest& request_;
  const LayoutChoice& choice_;
  const Stage& stage_;
  bool all_;
  Layout own_;
  Vector<Trial> trials_;
  std::size_t done_ = 0;  ///< trials that have run
};
}  // namespace quern::codec::stencil
