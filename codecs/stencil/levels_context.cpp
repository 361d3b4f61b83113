// Features of contexts, row by row.
#include "codecs/stencil/levels_context.h"

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

void add_spread_rows(std::size_t feature, const double* after, const double* before, const double* predicted,
                     unsigned fraction_bits, std::uint32_t weight, std::size_t columns,
                     const kernels::StencilKernels& kernels, std::uint32_t* sums) {
  constexpr double kMost = kMaxSpread;
  const double scale = static_cast<double>(1u << kSpreadBits) / static_cast<double>(1u << fraction_bits);
  if (feature == kChangeFeature)
    return kernels.add_distances(before, before, 0, predicted, -1, scale, kMost, weight, columns, sums);
  // Both are twice the distance, or the difference over two steps.
  const bool bend = feature < kSlopeFeature;
  kernels.add_distances(after, before, bend ? 1 : -1, predicted, bend ? -2 : 0, scale / 2, kMost, weight, columns,
                        sums);
}

}  // namespace

void add_spread(const LevelGrid& grid, const ContextRow& row, std::size_t feature, const double* predicted,
                unsigned fraction_bits, std::uint32_t weight, const kernels::StencilKernels& kernels,
                std::uint32_t* sums) {
  const std::size_t columns = grid.view(row.parity_class).extents[grid.axes().rank - 1];
  const std::array<Offset, 2> offsets = spread_offsets(feature);
  add_spread_rows(feature, grid.value_row(row.parity_class, row.index, offsets[0]),
                  grid.value_row(row.parity_class, row.index, offsets[1]), predicted, fraction_bits, weight, columns,
                  kernels, sums);
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
    if (counts_magnitudes(f)) continue;
    for (const Offset& offset : spread_offsets(f)) grid.plan_tap(place.parity_class, offset, 1.0, spread_taps);
  }
}

void context_sums(const LevelGrid& grid, const ContextRow& row, const ContextPlan& plan, const double* predicted,
                  unsigned fraction_bits, const kernels::StencilKernels& kernels, ContextRoom& room) {
  const std::size_t columns = grid.view(row.parity_class).extents[grid.axes().rank - 1];
  const bool inside = grid.inside(row.index);
  if (inside) {
    grid.planned_sources(row.index, plan.taps, room.sources);
    if (plan.spread_taps.count > 0) grid.planned_sources(row.index, plan.spread_taps, room.spread_sources);
  } else {
    room.sources.count = 0;
  }
  std::size_t spread = 0;  // features of differences so far
  for (std::size_t i = 0; i < plan.features.count; ++i) {
    const std::size_t f = plan.features.list[i];
    const std::uint32_t w = plan.weights.weights[f];
    if (counts_magnitudes(f)) {
      if (!inside) feature_sources(grid, row, f, w, room.sources);
      continue;
    }
    if (spread == 0) std::fill_n(room.spread, columns, 0u);
    if (inside) {
      const double* const* const rows = room.spread_sources.rows.data() + 2 * spread;
      add_spread_rows(f, rows[0], rows[1], predicted, fraction_bits, w, columns, kernels, room.spread);
    } else {
      add_spread(grid, row, f, predicted, fraction_bits, w, kernels, room.spread);
    }
    ++spread;
  }
  kernels.context_sums(room.sources.rows.data(), room.sources.weights.data(), room.sources.count, plan.weights.constant,
                       columns, room.sums);
  if (spread > 0) kernels.add_shifted(room.spread, kSpreadBits, columns, room.sums);
}

}  // namespace quern::codec::stencil
