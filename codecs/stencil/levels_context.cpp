// Features of contexts, row by row.
#include "codecs/stencil/levels_context.h"

#include <algorithm>
#include <bit>
#include <cmath>

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
  if (feature < kBendFeature || feature == kChangeFeature) return later;
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

void feature_sources(const LevelGrid& grid, const ContextRow& row, std::size_t feature, std::uint32_t weight,
                     MagnitudeSources& out) {
  const std::size_t back = feature == kBackFeature ? 2 : 1;
  if (feature >= kAboveFeature && feature <= kBackFeature && row.index[same_class_axis(grid.axes(), back)] == 0) return;
  for_feature_offsets(grid.axes(), row.level, feature, [&](const Offset& offset) {
    out.add(grid.magnitude_row(row.parity_class, row.index, offset), weight);
  });
}

void add_spread(const LevelGrid& grid, const ContextRow& row, std::size_t feature, const double* predicted,
                unsigned fraction_bits, std::uint32_t weight, const kernels::StencilKernels& kernels,
                std::uint32_t* sums) {
  const std::size_t columns = grid.view(row.parity_class).extents[grid.axes().rank - 1];
  constexpr double kMost = kMaxSpread;
  Offset offset{};
  if (feature == kChangeFeature) {
    const double scale = std::ldexp(1.0, static_cast<int>(kSpreadBits) - static_cast<int>(fraction_bits));
    offset[0] = -1;
    const double* const before = grid.value_row(row.parity_class, row.index, offset);
    return kernels.add_distances(before, before, 0, predicted, -1, scale, kMost, weight, columns, sums);
  }
  // Both are twice the distance, or the difference over two steps.
  const double scale = std::ldexp(1.0, static_cast<int>(kSpreadBits) - 1 - static_cast<int>(fraction_bits));
  const bool bend = feature < kSlopeFeature;
  offset[feature - (bend ? kBendFeature : kSlopeFeature)] = 1;
  const double* const after = grid.value_row(row.parity_class, row.index, offset);
  const double* const before = grid.value_row(row.parity_class, row.index, opposite(offset));
  kernels.add_distances(after, before, bend ? 1 : -1, predicted, bend ? -2 : 0, scale, kMost, weight, columns, sums);
}

ContextPlan::ContextPlan(const LevelGrid& grid, const ContextRow& place, const ContextWeights& given) : weights(given) {
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
    if (counts_magnitudes(f))
      for_feature_offsets(grid.axes(), place.level, f,
                          [&](const Offset& offset) { grid.plan_tap(place.parity_class, offset, w, taps); });
  }
}

void context_sums(const LevelGrid& grid, const ContextRow& row, const ContextPlan& plan, const double* predicted,
                  unsigned fraction_bits, const kernels::StencilKernels& kernels, ContextRoom& room) {
  const std::size_t columns = grid.view(row.parity_class).extents[grid.axes().rank - 1];
  const bool inside = grid.inside(row.index);
  if (inside) {
    grid.planned_sources(row.index, plan.taps, room.sources);
  } else {
    room.sources.count = 0;
  }
  bool spread = false;
  for (std::size_t i = 0; i < plan.features.count; ++i) {
    const std::size_t f = plan.features.list[i];
    const std::uint32_t w = plan.weights.weights[f];
    if (counts_magnitudes(f)) {
      if (!inside) feature_sources(grid, row, f, w, room.sources);
      continue;
    }
    if (!spread) std::fill_n(room.spread, columns, 0u);
    spread = true;
    add_spread(grid, row, f, predicted, fraction_bits, w, kernels, room.spread);
  }
  kernels.context_sums(room.sources.rows.data(), room.sources.weights.data(), room.sources.count, plan.weights.constant,
                       columns, room.sums);
  if (!spread) return;
  for (std::size_t x = 0; x < columns; ++x) room.sums[x] += room.spread[x] >> kSpreadBits;
}

}  // namespace quern::codec::stencil
