// What the context of a residual in levels is made of: magnitudes of residuals of known points around it, and how much
// the values there disagree.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codecs/stencil/levels/axes.h"
#include "codecs/stencil/levels/grid.h"
#include "codecs/stencil/levels/taps.h"
#include "kernels/stencil/rules.h"

namespace quern::codec::stencil {

/// Features by number. 1 .. 15: sum of the magnitudes at the known offsets of -1, 0, 1 that are not 0 along the axes
/// of the mask (one or two of them); the mask has the last axis lowest.
enum Feature : std::size_t {
  kAboveFeature = 16,       ///< magnitude of the class's row before
  kSidesFeature = 17,       ///< its columns before and after
  kBackFeature = 18,        ///< magnitude of the class's plane before
  kPlaneFeature = 19,       ///< magnitude in the plane before of a sequential axis
  kPlaneSidesFeature = 20,  ///< the points around that
  kBendFeature = 21,        ///< + axis: distance of the prediction from the line between the neighbours
  kSlopeFeature = 25,       ///< + axis: difference of the neighbours
  kChangeFeature = 29,      ///< distance of the prediction from the plane before
  kFeatures = 30,
};

struct ContextWeights {
  bool present = false;
  std::array<std::uint16_t, kFeatures> weights{};
  std::uint16_t constant = 0;
};

/// The features that a class of a level has.
struct FeatureList {
  std::array<std::uint8_t, kFeatures> list{};
  std::size_t count = 0;
  FeatureList() = default;
  FeatureList(const LevelAxes& axes, unsigned level, std::size_t parity_class, bool later);
};

/// True for features that are sums of magnitudes; the others are differences of values in units of 1/64 code.
constexpr bool counts_magnitudes(std::size_t feature) { return feature < kBendFeature; }
using kernels::kMaxSpread;
inline constexpr unsigned kSpreadBits = kernels::kSpreadFractionBits;

/// Offsets of the magnitudes that a feature sums up.
struct FeatureOffsets {
  std::array<Offset, 2 * kMaxAxes> list{};
  std::size_t count = 0;
};
FeatureOffsets feature_offsets(const LevelAxes& axes, unsigned level, std::size_t feature);

/// A class row whose contexts are wanted.
struct ContextRow {
  std::size_t parity_class = 0;
  RowIndex index{};
  unsigned level = 0;
  bool later = false;
};

/// Adds the rows of magnitudes that a feature sums up.
template <class Value>
void feature_sources(const LevelGridOf<Value>& grid, const ContextRow& row, std::size_t feature, std::uint32_t weight,
                     MagnitudeSourcesOf<Value>& out);
/// Resolves them, with weights of 1, for rows away from the border in which `row_has` the feature.
template <class Value>
void plan_feature(const LevelGridOf<Value>& grid, const ContextRow& place, std::size_t feature,
                  PlannedTaps<std::uint32_t>& out);
/// False for features of the class's row or plane before where there is none.
bool row_has(const LevelAxes& axes, const RowIndex& row, std::size_t feature);
/// Adds a feature of differences times its weight, each difference at most kMaxSpread; `predicted` are integers in
/// units of step / 2^fraction_bits.
template <class Value>
void add_spread(const LevelGridOf<Value>& grid, const ContextRow& row, std::size_t feature, const double* predicted,
                unsigned fraction_bits, std::uint32_t weight, const kernels::StencilKernels& kernels,
                std::uint32_t* sums);

/// Contexts of one class: its features with a weight, resolved for runs away from the border.
struct ContextPlan {
  FeatureList features;  ///< those whose weight is not 0
  ContextWeights weights;
  PlannedTaps<std::uint32_t> taps;  ///< but those of the row above

  ContextPlan() = default;
  template <class Value>
  ContextPlan(const LevelGridOf<Value>& grid, const ContextRow& place, const ContextWeights& weights);
};

/// What the contexts of a run's rows are made from; all of its first row.
template <class Value>
struct ContextSources {
  static constexpr std::size_t kMostSpreads = kFeatures - kBendFeature;
  MagnitudeSourcesOf<Value> magnitudes;
  std::size_t first_row = 0;  ///< how many of the magnitudes the first row has; those of the row above come after
  std::array<kernels::SpreadSource<Value>, kMostSpreads> spreads;
  std::array<kernels::SpreadSource<Value>, kMostSpreads> last_row;  ///< the same for the last row
  std::size_t spread_count = 0;
};
template <class Value>
void find_context_sources(const LevelGridOf<Value>& grid, const ContextRow& first, const ContextPlan& plan,
                          unsigned fraction_bits, ContextSources<Value>& out);

}  // namespace quern::codec::stencil
