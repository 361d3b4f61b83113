// Features of contexts, row by row.
#include "codecs/stencil/levels/context.h"

#include <algorithm>
#include <bit>

namespace quern::codec::stencil {
namespace {

Offset opposite(const Offset& offset) {
  Offset result{};
  for (std::size_t a = 0; a < kMaxAxes; ++a) result[a] = static_cast<std::int8_t>(-offset[a]);
  return result;
}

std::size_t axis_bit(const LevelAxes& axes, std::size_t axis) { return std::size_t{1} << (axes.rank - 1 - axis); }

/// True when a class may look at known points along exactly the axes of a mask.
bool mask_known(const LevelAxes& axes, unsigned level, std::size_t parity_class, std::size_t mask) {
  if (mask >> axes.rank != 0 || mask == 0 || std::popcount(mask) > 2) return false;
  for (std::size_t a = 0; a < axes.rank; ++a)
    if ((mask & axis_bit(axes, a)) != 0 && !axes.live(a, level)) return false;
  return class_before(parity_class ^ mask, parity_class);
}

/// The axis of rows above, or of planes back; rank if there is none.
std::size_t same_class_axis(const LevelAxes& axes, std::size_t back) {
  if (axes.rank <= back || !axes.hierarchical(axes.rank - 1 - back)) return axes.rank;
  return axes.rank - 1 - back;
}

bool has_feature(const LevelAxes& axes, unsigned level, std::size_t parity_class, bool later, std::size_t feature) {
  const auto odd = [&](std::size_t axis) { return axis < axes.rank && axes.parity(parity_class, axis) != 0; };
  if (feature < kAboveFeature) return mask_known(axes, level, parity_class, feature);
  if (feature == kAboveFeature || feature == kSidesFeature)
    return parity_class != 0 && same_class_axis(axes, 1) < axes.rank;
  if (feature == kBackFeature) return parity_class != 0 && same_class_axis(axes, 2) < axes.rank;
  if (feature < kBendFeature) return later && axes.given == 0;
  if (feature == kChangeFeature) return later;
  return odd(feature < kSlopeFeature ? feature - kBendFeature : feature - kSlopeFeature);
}

/// Calls visit(offset) for the magnitudes that a feature sums up.
template <class Visit>
void for_feature_offsets(const LevelAxes& axes, unsigned level, std::size_t feature, const Visit& visit) {
  Offset offset{};
  if (feature < kAboveFeature) {
    Offset other{};  // the last of two axes the other way
    for (std::size_t a = 0; a < std::min(axes.rank, kMaxAxes); ++a) {
      if ((feature & axis_bit(axes, a)) == 0) continue;
      for (std::int8_t& d : other) d = static_cast<std::int8_t>(-d);
      offset[a] = 1;
      other[a] = 1;
    }
    visit(offset);
    visit(opposite(offset));
    if (std::popcount(feature) == 1) return;
    visit(other);
    visit(opposite(other));
    return;
  }
  if (feature <= kBackFeature) {
    offset[same_class_axis(axes, feature == kBackFeature ? 2 : 1)] = -2;
    if (feature != kSidesFeature) return visit(offset);
    offset[axes.rank - 1] = -2;
    visit(offset);
    offset[axes.rank - 1] = 2;
    return visit(offset);
  }
  offset[0] = -1;
  if (feature == kPlaneFeature) return visit(offset);
  for (std::size_t a = 1; a < axes.rank; ++a) {
    if (!axes.live(a, level)) continue;
    for (const int d : {-1, 1}) {
      Offset side = offset;
      side[a] = static_cast<std::int8_t>(d);
      visit(side);
    }
  }
}

}  // namespace

FeatureList::FeatureList(const LevelAxes& axes, unsigned level, std::size_t parity_class, bool later) {
  for (std::size_t f = 1; f < kFeatures; ++f)
    if (has_feature(axes, level, parity_class, later, f)) list[count++] = static_cast<std::uint8_t>(f);
}

FeatureOffsets feature_offsets(const LevelAxes& axes, unsigned level, std::size_t feature) {
  FeatureOffsets offsets;
  for_feature_offsets(axes, level, feature, [&](const Offset& offset) { offsets.list[offsets.count++] = offset; });
  return offsets;
}

bool row_has(const LevelAxes& axes, const RowIndex& row, std::size_t feature) {
  if (feature < kAboveFeature || feature > kBackFeature) return true;
  return row[same_class_axis(axes, feature == kBackFeature ? 2 : 1)] != 0;
}

template <class Value>
void plan_feature(const LevelGridOf<Value>& grid, const ContextRow& place, std::size_t feature,
                  PlannedTaps<std::uint32_t>& out) {
  out.count = 0;
  for_feature_offsets(grid.axes(), place.level, feature,
                      [&](const Offset& offset) { grid.plan_tap(place.parity_class, offset, 1u, out); });
}

template <class Value>
void feature_sources(const LevelGridOf<Value>& grid, const ContextRow& row, std::size_t feature, std::uint32_t weight,
                     MagnitudeSourcesOf<Value>& out) {
  if (!row_has(grid.axes(), row.index, feature)) return;
  for_feature_offsets(grid.axes(), row.level, feature, [&](const Offset& offset) {
    out.add(grid.magnitude_row(row.parity_class, row.index, offset), weight);
  });
}

namespace {

/// The two points that a feature of differences looks at; of the plane before there is one, twice.
std::array<Offset, 2> spread_offsets(std::size_t feature) {
  std::array<Offset, 2> offsets{};
  if (feature == kChangeFeature) {
    offsets[0][0] = offsets[1][0] = -1;
    return offsets;
  }
  const std::size_t axis = feature - (feature < kSlopeFeature ? kBendFeature : kSlopeFeature);
  offsets[0][axis] = 1;
  offsets[1][axis] = -1;
  return offsets;
}

/// A feature of differences of a row whose two points are given.
template <class Value>
kernels::SpreadSource<Value> spread_source(std::size_t feature, const Value* after, const Value* before,
                                           unsigned fraction_bits, std::uint32_t weight) {
  const int scale_bits = static_cast<int>(kSpreadBits) - static_cast<int>(fraction_bits);
  if (feature == kChangeFeature) return {before, before, kernels::Spread::change, scale_bits, weight};
  // Both are twice the distance, or the difference over two steps.
  const kernels::Spread kind = feature < kSlopeFeature ? kernels::Spread::bend : kernels::Spread::slope;
  return {after, before, kind, scale_bits - 1, weight};
}

/// The axis along which a feature of differences looks.
std::size_t spread_axis(std::size_t feature) {
  if (feature == kChangeFeature) return 0;
  return feature - (feature < kSlopeFeature ? kBendFeature : kSlopeFeature);
}

bool looks_above(std::size_t feature) { return feature == kAboveFeature || feature == kSidesFeature; }

}  // namespace

template <class Value>
void add_spread(const LevelGridOf<Value>& grid, const ContextRow& row, std::size_t feature, const double* predicted,
                unsigned fraction_bits, std::uint32_t weight, const kernels::StencilKernels& kernels,
                std::uint32_t* sums) {
  const std::size_t columns = grid.view(row.parity_class).extents[grid.axes().rank - 1];
  const std::array<Offset, 2> offsets = spread_offsets(feature);
  const kernels::SpreadSource<Value> source =
      spread_source(feature, grid.value_row(row.parity_class, row.index, offsets[0]),
                    grid.value_row(row.parity_class, row.index, offsets[1]), fraction_bits, weight);
  kernels.fit.of<Value>().add_distances(source, predicted, kMaxSpread, columns, sums);
}

template <class Value>
ContextPlan::ContextPlan(const LevelGridOf<Value>& grid, const ContextRow& place, const ContextWeights& given)
    : weights(given) {
  const FeatureList all(grid.axes(), place.level, place.parity_class, place.later);
  for (std::size_t i = 0; i < all.count; ++i) {
    const std::size_t f = all.list[i];
    const std::uint32_t w = weights.weights[f];
    if (w == 0) continue;
    // Along an axis of a single index nothing lies before it, even for rows away from the border.
    if (f >= kAboveFeature && f <= kBackFeature &&
        !grid.axes().live(same_class_axis(grid.axes(), f == kBackFeature ? 2 : 1), place.level))
      continue;
    features.list[features.count++] = all.list[i];
    if (counts_magnitudes(f) && !looks_above(f))
      for_feature_offsets(grid.axes(), place.level, f,
                          [&](const Offset& offset) { grid.plan_tap(place.parity_class, offset, w, taps); });
  }
}

template <class Value>
void find_context_sources(const LevelGridOf<Value>& grid, const ContextRow& first, const ContextPlan& plan,
                          unsigned fraction_bits, ContextSources<Value>& out) {
  const std::size_t c = first.parity_class;
  const auto add = [&](std::size_t f) {
    for_feature_offsets(grid.axes(), first.level, f, [&](const Offset& offset) {
      out.magnitudes.add(grid.run_magnitude_row(c, first.index, offset), plan.weights.weights[f]);
    });
  };
  const bool inside = grid.inside(first.index);
  out.magnitudes.count = 0;
  out.spread_count = 0;
  if (inside) grid.planned_sources(first.index, plan.taps, out.magnitudes);
  for (std::size_t i = 0; i < plan.features.count; ++i) {
    const std::size_t f = plan.features.list[i];
    if (counts_magnitudes(f)) {
      if (inside || looks_above(f)) continue;
      if (f == kBackFeature && first.index[same_class_axis(grid.axes(), 2)] == 0) continue;
      add(f);
      continue;
    }
    const std::array<Offset, 2> offsets = spread_offsets(f);
    const auto source = [&](const Value* after) {
      return spread_source(f, after, grid.run_value_row(c, first.index, offsets[1]), fraction_bits,
                           plan.weights.weights[f]);
    };
    out.spreads[out.spread_count] = source(grid.run_value_row(c, first.index, offsets[0]));
    out.last_row[out.spread_count] = out.spreads[out.spread_count];
    if (spread_axis(f) == grid.run_axis()) {
      // The point behind the last row is the mirrored one, whatever else lies beyond the border.
      const std::size_t last = grid.run_rows(c) - 1;
      ContextRow row = first;
      row.index[grid.run_axis()] = last;
      out.last_row[out.spread_count] = source(grid.value_row(c, row.index, offsets[0]) - last * grid.row_pitch());
    }
    ++out.spread_count;
  }
  out.first_row = out.magnitudes.count;
  for (std::size_t i = 0; i < plan.features.count; ++i)
    if (looks_above(plan.features.list[i])) add(plan.features.list[i]);
}

template void feature_sources(const LevelGridOf<double>&, const ContextRow&, std::size_t, std::uint32_t,
                              MagnitudeSourcesOf<double>&);
template void feature_sources(const LevelGridOf<std::int32_t>&, const ContextRow&, std::size_t, std::uint32_t,
                              MagnitudeSourcesOf<std::int32_t>&);
template void plan_feature(const LevelGridOf<double>&, const ContextRow&, std::size_t, PlannedTaps<std::uint32_t>&);
template void plan_feature(const LevelGridOf<std::int32_t>&, const ContextRow&, std::size_t,
                           PlannedTaps<std::uint32_t>&);
template void add_spread(const LevelGridOf<double>&, const ContextRow&, std::size_t, const double*, unsigned,
                         std::uint32_t, const kernels::StencilKernels&, std::uint32_t*);
template void add_spread(const LevelGridOf<std::int32_t>&, const ContextRow&, std::size_t, const double*, unsigned,
                         std::uint32_t, const kernels::StencilKernels&, std::uint32_t*);
template ContextPlan::ContextPlan(const LevelGridOf<double>&, const ContextRow&, const ContextWeights&);
template ContextPlan::ContextPlan(const LevelGridOf<std::int32_t>&, const ContextRow&, const ContextWeights&);
template void find_context_sources(const LevelGridOf<double>&, const ContextRow&, const ContextPlan&, unsigned,
                                   ContextSources<double>&);
template void find_context_sources(const LevelGridOf<std::int32_t>&, const ContextRow&, const ContextPlan&, unsigned,
                                   ContextSources<std::int32_t>&);

}  // namespace quern::codec::stencil
