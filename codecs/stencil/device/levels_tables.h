// The tables of jobs for chunks in levels: where classes lie, and what the rules say of taps, contexts and borders.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include <quern/memory.h>

#include "codecs/stencil/levels/axes.h"
#include "codecs/stencil/levels/context.h"
#include "codecs/stencil/levels/model.h"
#include "codecs/stencil/levels/taps.h"
#include "kernels/stencil/level_job.h"
#include "kernels/stencil/rules.h"

namespace quern::codec::stencil {

static_assert(kernels::kLevelAxes == kMaxAxes && kernels::kLevelClasses == kParityClasses);

struct LevelTables {
  explicit LevelTables(const LevelAxes& of) : axes(of), pad(kMaxAxes - of.rank) {}

  const LevelAxes& axes;
  std::size_t pad;  ///< axes that jobs have and the chunk lacks
  Vector<kernels::ClassPlan> plans;
  Vector<kernels::LevelTap<double>> taps;
  Vector<kernels::LevelTap<std::uint32_t>> magnitude_taps;
  Vector<kernels::LevelSpread> spreads;

  static Offset opposite(const Offset& offset) {
    Offset result{};
    for (std::size_t a = 0; a < kMaxAxes; ++a) result[a] = static_cast<std::int8_t>(-offset[a]);
    return result;
  }

  /// Returns how many places the level's arrays have.
  std::uint32_t lay_out_views(unsigned level, kernels::LevelStage& stage) const {
    std::uint32_t at = kernels::kLeftHalo;
    for (std::size_t c = 0; c < kParityClasses; ++c) {
      if (!axes.exists(c, level)) continue;
      kernels::LevelView& view = stage.views[c];
      std::fill(std::begin(view.extents), std::end(view.extents), 1u);
      view.rows = 1;
      for (std::size_t a = 0; a < axes.rank; ++a) {
        view.extents[pad + a] = static_cast<std::uint32_t>(axes.class_points(c, level, a));
        if (a + 1 < axes.rank) view.rows *= view.extents[pad + a];
      }
      view.stride = kernels::kLeftHalo + view.extents[kMaxAxes - 1] + kernels::kRightHalo;
      view.first = at;
      at += view.rows * view.stride;
    }
    return at;
  }

  /// Adds the plan of a class.
  void plan_class(const LevelsModel& model, unsigned level, bool later, std::size_t c) {
    kernels::ClassPlan plan;
    plan.taps = static_cast<std::uint32_t>(taps.size());
    const GroupList groups = groups_of(axes, level, c, later);
    const GroupWeights& weights = model.predictor(level, later, c).weights;
    for (std::size_t g = 0; g < groups.count; ++g) {
      if (weights[g] == 0) continue;
      add_tap(c, groups.groups[g].offset, static_cast<double>(weights[g]), taps);
      if (groups.groups[g].pair) add_tap(c, opposite(groups.groups[g].offset), static_cast<double>(weights[g]), taps);
    }
    plan.tap_count = static_cast<std::uint32_t>(taps.size()) - plan.taps;

    plan.magnitude_taps = static_cast<std::uint32_t>(magnitude_taps.size());
    plan.spreads = static_cast<std::uint32_t>(spreads.size());
    const ContextWeights& contexts = context_weights(model, level, later, c);
    plan.constant = contexts.constant;
    const FeatureList features(axes, level, c, later);
    for (std::size_t i = 0; i < features.count; ++i) {
      const std::size_t f = features.list[i];
      const std::uint32_t weight = contexts.weights[f];
      if (weight == 0) continue;
      if (f == kAboveFeature) {
        plan.above = weight;
      } else if (f == kSidesFeature) {
        plan.sides = weight;
      } else if (f == kBackFeature) {
        plan.back = weight;
      } else if (counts_magnitudes(f)) {
        const FeatureOffsets offsets = feature_offsets(axes, level, f);
        for (std::size_t o = 0; o < offsets.count; ++o) add_tap(c, offsets.list[o], weight, magnitude_taps);
      } else {
        add_spread(model.format.fraction_bits, c, f, weight);
      }
    }
    plan.magnitude_tap_count = static_cast<std::uint32_t>(magnitude_taps.size()) - plan.magnitude_taps;
    plan.spread_count = static_cast<std::uint32_t>(spreads.size()) - plan.spreads;
    plans.push_back(plan);
  }

  template <class Weight>
  void add_tap(std::size_t c, const Offset& offset, Weight weight, Vector<kernels::LevelTap<Weight>>& to) const {
    kernels::LevelTap<Weight>& tap = to.emplace_back();
    tap.weight = weight;
    tap.in_class = resolve(c, offset, tap.step);
  }

  /// As add_spread of codecs/stencil/levels/context.h.
  void add_spread(unsigned value_bits, std::size_t c, std::size_t feature, std::uint32_t weight) {
    const auto fraction_bits = static_cast<int>(value_bits);
    kernels::LevelSpread& spread = spreads.emplace_back();
    spread.weight = weight;
    Offset offset{};
    if (feature == kChangeFeature) {
      offset[0] = -1;
      spread.predicted_factor = -1;
      spread.scale = std::ldexp(1.0, static_cast<int>(kSpreadBits) - fraction_bits);
      spread.first_class = resolve(c, offset, spread.first_step);
      spread.second_class = resolve(c, offset, spread.second_step);
      return;
    }
    const bool bend = feature < kSlopeFeature;
    offset[feature - (bend ? kBendFeature : kSlopeFeature)] = 1;
    spread.second_factor = bend ? 1 : -1;
    spread.predicted_factor = bend ? -2 : 0;
    spread.scale = std::ldexp(1.0, static_cast<int>(kSpreadBits) - 1 - fraction_bits);
    spread.first_class = resolve(c, offset, spread.first_step);
    spread.second_class = resolve(c, opposite(offset), spread.second_step);
  }

 private:
  /// Class of a neighbour, and steps between the indices of a point in its class and of the neighbour in its own.
  std::uint8_t resolve(std::size_t parity_class, const Offset& offset, std::int8_t* step) const {
    std::size_t in_class = 0;
    for (std::size_t a = 0; a < axes.rank; ++a) {
      const int place = static_cast<int>(axes.parity(parity_class, a)) + offset[a];
      const bool halved = axes.hierarchical(a);
      in_class = in_class << 1 | (static_cast<unsigned>(place) & (halved ? 1u : 0u));
      step[pad + a] = static_cast<std::int8_t>(halved ? place >> 1 : offset[a]);
    }
    return static_cast<std::uint8_t>(in_class);
  }
};

}  // namespace quern::codec::stencil
